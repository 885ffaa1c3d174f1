-- import: nothing -> delayed, ready if already due, or dead; with the job's history. No job may occur twice in a call.
-- KEYS  shard
-- ARGV  what arrivals.lanes reads; then per job: locator, due, lane id, the record from its flags on, external payload or '', and its history or '': 1 when
--   it is dead (1 byte), when it was created (6 bytes), attempts and failures (4 bytes each), and the last failed
--   attempt with the reason, packed as a job state ends with them
-- Returns what submit returns; for a new job with a history {201, state, job state, record's start}
-- Uses arrivals, dead_letters, events, records, shard.

-- Computes when a job is due (ms). A dead job keeps an absolute time as it is, also one long ago.
local function due_of(text, is_dead)
  if is_dead and byte(text) ~= 43 then return tonumber(text) end
  return arrivals.due_time(text)
end

local function state_of(history, is_dead)
  local created = min(read('>I6', history, 2), NOW)
  return char(is_dead and DEAD or DELAYED, 0) .. NO_TIME .. sub(history, 8, 15) .. '\0'
    .. NO_LEASE .. NO_LEASE .. NO_TIME .. NO_LEASE .. six(created) .. sub(history, 16)
end

function scripts.import(args)
  local locs, from = arrivals.begin(args)
  local refused = arrivals.check_accepts_jobs()
  if refused then return refused end
  local answers, dead = {}, {}

  for j, loc in ipairs(locs) do
    local i = from + 6 * (j - 1)
    local lane, rest, history = args[i + 2], args[i + 3], args[i + 5]
    local is_dead = byte(history) == 1
    local group = arrivals.group(lane, due_of(args[i + 1], is_dead), is_dead and DEAD or nil)
    local answer = arrivals.refusal(group, loc, rest)
    if not answer then
      arrivals.add(group, loc, rest, args[i + 4])
      arrivals.close(group)
      if is_dead then
        dead[#dead + 1] = dead_letters.entry(loc, lane)
        events.dead(loc, lane, sub(history, 16))
      end
      answer = group.times
      if history ~= '' then
        jobs.put(loc, state_of(history, is_dead))
        answer = jobs.described(201, group.code, group.times .. rest, states[loc])
      end
    end
    answers[j] = answer
  end

  dead_letters.add(dead)
  arrivals.save()
  jobs.save()
  shard.close()
  return arrivals.answered(answers)
end
