-- submit: nothing -> delayed, or ready if already due. No job may occur twice in a call.
-- KEYS  shard
-- ARGV  how many accepted jobs the caller knows of; how many lanes, then per lane: id, name, limits of its tenant; then
--   per group of jobs that share lane and due time: lane id, due ("+ms" from now, or absolute ms), how many, and per
--   job: locator, the record from its flags on, external payload or ''
-- Returns per job: due and created as 12 bytes, new; {200, state, job state or '', record's start} the
--   same content again; {409, ...} other content; {200 or 409, tombstone} once the job has ended; {422,
--   'topics' or 'lanes'} if there are too many of them, {429, ...} if its tenant has too many; {421} if another lane
--   has the id of the job's lane. Then how many jobs the shard has accepted. Or {'lost', how many it has accepted} if it has
--   accepted fewer than the caller knows of, or {'archive', ...} while the archive outbox is full: nothing was added
-- Uses arrivals, shard.
function scripts.submit(args)
  local names, from = arrivals.lanes(args)
  shard.begin(names)
  local refused = arrivals.check_accepts_jobs()
  if refused then return refused end
  local locs, n, last = {}, 0, #args
  local i = from
  while i < last do
    local stop = i + 3 * tonumber(args[i + 2])
    for j = i + 3, stop, 3 do
      n = n + 1
      locs[n] = args[j]
    end
    i = stop + 3
  end
  arrivals.look_up(locs)

  local answers, answered = {}, 0
  i = from
  while i < last do
    local stop = i + 3 * tonumber(args[i + 2])
    local group = arrivals.group(args[i], arrivals.due_time(args[i + 1]))
    for j = i + 3, stop, 3 do
      local loc, rest = args[j], args[j + 1]
      local answer = arrivals.refusal(group, loc, rest)
      if not answer then
        arrivals.add(group, loc, rest, args[j + 2])
        answer = group.times
      end
      answered = answered + 1
      answers[answered] = answer
    end
    arrivals.close(group)
    i = stop + 3
  end

  arrivals.save()
  shard.close()
  return arrivals.answered(answers)
end
