-- One job: reads its data, what it waits for, and the log of its attempts.
-- Uses attempt_logs, destinations, due_index, lanes, order, paused_lanes, ready, records, shard, tombs.

-- get: the data of a job.
-- KEYS  shard
-- ARGV  locator
-- Returns {state, job state or '', record's start}, {tombstone} or {}
function scripts.get(args)
  local loc = args[1]
  shard.begin()
  local raw, s, tomb = tombs.find(loc)
  if raw then return {due_index.code(loc, raw, s), s or '', record.start(raw)} end
  return tomb and {tomb} or {}
end

-- get_stored: everything that is stored of a job.
-- KEYS  shard
-- ARGV  locator
-- Returns {state, job state or '', lane name or '' if that is not known, record}, {tombstone} or {}
function scripts.get_stored(args)
  local loc = args[1]
  shard.begin()
  local raw, s, tomb = tombs.find(loc)
  if not raw then return tomb and {tomb} or {} end
  local lane = record.lane(raw)
  shard.load_rows({lane})
  return {due_index.code(loc, raw, s), s or '', lanes.name(lane) or '', raw}
end

-- waits: what keeps a job from being delivered.
-- KEYS  shard
-- ARGV  locator, how many jobs before it are counted
-- Returns {1 if its topic is paused, 1 if its destination is, how many ready jobs of its lane are before it or -1 if it is
--   not ready, how many jobs of its key go before it in an ordered topic or -1 if it is their head, the id of the
--   head or '', 1 if the head is dead, name of a limit, ...}
function scripts.waits(args)
  local loc, most = args[1], tonumber(args[2])
  shard.begin()
  local raw, s = tombs.find(loc)
  local lane = raw and record.lane(raw)
  if not lane then return {0, 0, -1, -1, '', 0} end
  shard.load_rows({lane})
  local is_topic, is_destination = paused_lanes.pauses(lane)
  local answer = {is_topic and 1 or 0, is_destination and 1 or 0, -1, -1, '', 0}
  if due_index.code(loc, raw, s) ~= READY then return answer end
  local before, entry = most, loc .. jobs.due(raw, s)
  for i, found in ipairs(ready.range(lane, 0, most)) do
    if found == entry then
      before = i - 1
      break
    end
  end
  answer[3] = before
  local behind, head = order.before(loc, raw, s, most)
  if head and jobs.get(head) then
    local its_state = states[head]
    answer[4], answer[5] = behind, record.id(records[head])
    answer[6] = its_state and state.code(its_state) == DEAD and 1 or 0
  end
  for _, limit in ipairs(destinations.limits(lanes.name(lane))) do answer[#answer + 1] = limit end
  return answer
end

-- attempts: the log of a job's attempts.
-- KEYS  shard
-- ARGV  locator
-- Returns {now (ms), when the job was created (6 bytes) or '' if that is not known, log or ''}
function scripts.attempts(args)
  local loc = args[1]
  shard.begin()
  local raw, s, tomb = tombs.find(loc)
  local created = raw and jobs.created(raw, s) or tomb and tombs.created(tomb) or ''
  local found = attempt_logs.find({loc})
  return {NOW, created, found[loc] or ''}
end
