-- submit: nothing -> delayed, or ready when already due.
-- KEYS  shard
-- ARGV  how many lanes, then per lane: id, words; then per job: locator, due ("+ms" from
--   now, or absolute ms), lane id, the record from its flags on, external payload or ''
-- Returns per job: due and created as 12 bytes, new; {200, state, run or '', record's start}
--   the same content again; {409, ...} other content; {200 or 409, tombstone} once the job
--   has ended.
local SUBMIT = {'next', 'accepted', 'delayed', 'ready', 'segment', 'slot'}

function edges.submit(args)
  local lanes, from = lanes_named(args)
  begin(SUBMIT, lanes)
  local locs, answers, n = {}, {}, 0
  for i = from, #args, 5 do
    n = n + 1
    locs[n] = args[i]
  end
  look_up(locs)

  local text, at, times
  for j = 1, n do
    local i = from + 5 * (j - 1)
    local loc, rest = args[i], args[i + 3]
    local answer = (records[loc] or graves[loc]) and taken(loc, sub(rest, 6, 13))
    if not answer then
      if args[i + 1] ~= text then
        text = args[i + 1]
        at = due_time(text)
        times = pack('>I6I6', at, NOW)
      end
      arrive(loc, at <= NOW and READY or DELAYED, at, times, args[i + 2], rest, args[i + 4])
      answer = times
    end
    answers[j] = answer
  end

  save_arrivals()
  close()
  return answers
end
