-- import: nothing -> delayed, ready when already due, or dead; with what a job has behind it.
-- A name must be there only once.
-- KEYS  shard
-- ARGV  how many lanes, then per lane: id, words; then per job: locator, due, lane
--   id, the record from its flags on, external payload or '', and its history or '': 1 when it is dead (1 byte), when it was created (6 bytes), attempts and
--   failures (4 bytes each), and the last failed attempt with the reason as a run ends with
--   them
-- Returns what submit returns; for a new job with a history {201, state, run, record's start}.
local IMPORT = {'next', 'accepted', 'delayed', 'ready', 'dead', 'segment', 'slot', 'dead_at', 'lanes', 'topics'}

-- A dead job keeps the time that it was last due.
local function due_of(text, is_dead)
  if is_dead and byte(text) ~= 43 then return tonumber(text) end
  return due_time(text)
end

local function run_of(history, is_dead)
  local created = min(read('>I6', history, 2), NOW)
  return char(is_dead and DEAD or DELAYED, 0) .. NO_TIME .. sub(history, 8, 15) .. '\0'
    .. NO_LEASE .. NO_LEASE .. NO_TIME .. NO_LEASE .. six(created) .. sub(history, 16)
end

function edges.import(args)
  local names, from = lanes_named(args)
  begin(IMPORT, names)
  local locs, answers, dead = {}, {}, {}
  for i = from, #args, 6 do locs[#locs + 1] = args[i] end
  look_up(locs)

  for j, loc in ipairs(locs) do
    local i = from + 6 * (j - 1)
    local rest, history = args[i + 3], args[i + 5]
    local is_known = records[loc] or graves[loc]
    local answer = is_known and taken(loc, sub(rest, 6, 13)) or topics.refuse(args[i + 2], words_of[args[i + 2]])
    if not answer then
      local is_dead = byte(history) == 1
      local group = arrivals_at(args[i + 2], due_of(args[i + 1], is_dead), is_dead and DEAD or nil)
      arrive(group, loc, rest, args[i + 4])
      arrived(group)
      if is_dead then
        dead[#dead + 1] = deaths.entry(loc, args[i + 2])
        events.dead(loc, args[i + 2], sub(history, 16))
      end
      answer = group.times
      if history ~= '' then
        put(loc, run_of(history, is_dead))
        answer = described(201, group.state, group.times .. rest, runs[loc])
      end
    end
    answers[j] = answer
  end

  deaths.add(dead)
  save_arrivals()
  save()
  close()
  return answers
end
