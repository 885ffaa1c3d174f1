-- submit: nothing -> delayed, or ready if already due. No job may occur twice in a call.
-- KEYS  shard
-- ARGV  what arrivals.lanes reads; then groups of jobs that share lane and due time: a head with due ("+ms" from now, or
--   absolute ms), and per job: locator, the record from its flags on, and its payload if that is external
-- Returns per job: due and created as 12 bytes, new; {200, state, job state or '', record's start} the
--   same content again; {409, ...} other content; {200 or 409, tombstone} once the job has ended; {422,
--   'topics' or 'lanes'} if there are too many of them, {429, ...} if its tenant has too many; {421} if another lane
--   has the id of the job's lane. Then how many jobs the shard has accepted. Or {'lost', how many it has accepted} if it has
--   accepted fewer than the caller knows of, or {'archive', ...} while the archive outbox is full: nothing was added
-- Uses arrivals, due_index, lanes, ready, shard, tombs, topics.

-- How many arguments a job without an external payload has.
local PLAIN = 2

function scripts.submit(args)
  local names, from = arrivals.lanes(args)
  shard.begin(names)
  local refused = arrivals.check_accepts_jobs()
  if refused then return refused end
  local locs, n, last = {}, 0, #args
  local i = from
  while i < last do
    local step, stop = extent(args, i)
    for j = i + 1, stop, step do
      n = n + 1
      locs[n] = args[j]
    end
    i = stop + 1
  end
  arrivals.look_up(locs)

  local answers, answered = {}, 0
  i = from
  while i < last do
    local step, stop = extent(args, i)
    local group = arrivals.group(sub(args[i], 1, 8), arrivals.due_time(sub(args[i], SHARED_AT)))
    for j = i + 1, stop, step do
      local loc, rest = args[j], args[j + 1]
      local answer = arrivals.refusal(group, loc, rest)
      if not answer then
        arrivals.add(group, loc, rest, step == PLAIN and '' or args[j + 2])
        answer = group.times
      end
      answered = answered + 1
      answers[answered] = answer
    end
    arrivals.close(group)
    i = stop + 1
  end

  arrivals.save()
  shard.close()
  return arrivals.answered(answers)
end

-- The common case: new jobs of one known push lane, without tags, tokens and large payloads, while nobody watches and no
-- archive is attached.
function fast.submit(args)
  local lane, name, last = sub(args[2], 1, 8), args[3], #args
  local known, n_lanes = arrivals.numbers(args)
  if n_lanes > 1 or lanes.is_pull(lane) then return nil end
  local values = shard.open(lane, topics.field_of(name))
  local row, topic_row = values[3], values[4]
  local is_known = row and sub(row, 29) == name and topic_row and topics.is_row_of_this_hour(topic_row)
  local is_common = fields.accepted >= known and fields.unusual < shard.NOTED
  if not (is_known and is_common) then return nil end

  local near, has_far, first = due_index.near_end(), false, nil
  local locs, new, answers, delayed, at_once, n = {}, {}, {}, {}, {}, 0
  local i = 4
  while i < last do
    local at, step, stop = arrivals.due_time(sub(args[i], SHARED_AT)), extent(args, i)
    if step > PLAIN then return nil end
    local times, score, to = pack('>I6I6', at, NOW), nil, at_once
    if at >= near then
      to = {}
    elseif at > NOW then
      score, to = whole(at), delayed
      if not first or at < first then first = at end
    end
    local due, size = sub(times, 1, 6), #to
    for j = i + 1, stop, PLAIN do
      local loc, rest = args[j], args[j + 1]
      if byte(rest) > COMPRESSED then return nil end
      n = n + 1
      locs[n], answers[n], new[2 * n - 1], new[2 * n] = loc, times, loc, times .. rest
      if score then
        to[size + 1], to[size + 2] = score, loc .. due
        size = size + 2
      else
        size = size + 1
        to[size] = loc .. due
      end
    end
    if at >= near then
      if not has_far then due_index.start() end
      has_far = true
      due_index.add_all(lane, at, to)
    end
    i = stop + 1
  end
  if n > 1000 then return nil end
  if n == 1 then
    -- Writes the record if there is none, in one command.
    if tombs.is_any_known(locs) or call('HSETNX', KEY.pool, new[1], new[2]) == 0 then return nil end
  elseif arrivals.is_any_known(locs) then
    return nil
  end

  local n_ready = #at_once
  if first then
    due_index.put(lane, delayed, first)
    shard.wake_at(first)
  end
  if has_far then due_index.save() end
  if n_ready > 0 then
    ready.start()
    ready.push(lane, at_once, 'RPUSH')
    ready.wake()
  end
  if n > 1 then call('HSET', KEY.pool, unpack(new)) end
  fields.accepted, fields.delayed, fields.ready = fields.accepted + n, fields.delayed + n - n_ready, fields.ready + n_ready
  shard.save(lane, lanes.counted(row, n - n_ready, n_ready, 0))
  answers[n + 1] = fields.accepted
  return answers
end
