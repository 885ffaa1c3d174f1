-- submit: nothing -> delayed, or ready when already due. A name must be there only once.
-- KEYS  shard
-- ARGV  how many lanes, then per lane: id, words; then per group of jobs that share lane and
--   due time: lane id, due ("+ms" from now, or absolute ms), how many, and per job: locator,
--   the record from its flags on, external payload or ''
-- Returns per job: due and created as 12 bytes, new; {200, state, run or '', record's start}
--   the same content again; {409, ...} other content; {200 or 409, tombstone} once the job
--   has ended; {422, 'topics' or 'lanes'} where there are too many of them.
local SUBMIT = {'next', 'accepted', 'delayed', 'ready', 'segment', 'slot', 'lanes', 'topics'}

function edges.submit(args)
  local names, from = lanes_named(args)
  begin(SUBMIT, names)
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
  look_up(locs)

  local answers, answered = {}, 0
  i = from
  while i < last do
    local lane, stop = args[i], i + 3 * tonumber(args[i + 2])
    local group = arrivals_at(lane, due_time(args[i + 1]))
    for j = i + 3, stop, 3 do
      local loc = args[j]
      answered = answered + 1
      local full = not (records[loc] or graves[loc]) and topics.refuse(lane, words_of[lane])
      if records[loc] or graves[loc] then
        answers[answered] = taken(loc, sub(args[j + 1], 6, 13))
      elseif full then
        answers[answered] = full
      else
        arrive(group, loc, args[j + 1], args[j + 2])
        answers[answered] = group.times
      end
    end
    arrived(group)
    i = stop + 3
  end

  save_arrivals()
  close()
  return answers
end
