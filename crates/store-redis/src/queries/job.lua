-- One job: reads its data, its pauses, and the log of its attempts.
-- Uses attempt_logs, due_index, lanes, paused_lanes, records, shard, tombs.

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

-- paused_by: whether the topic and the destination of a job are paused.
-- KEYS  shard
-- ARGV  locator
-- Returns {1 if its topic is paused, 1 if its destination is}
function scripts.paused_by(args)
  shard.begin()
  local raw = jobs.get(args[1])
  local lane = raw and record.lane(raw)
  if not lane then return {0, 0} end
  shard.load_rows({lane})
  local is_topic, is_destination = paused_lanes.pauses(lane)
  return {is_topic and 1 or 0, is_destination and 1 or 0}
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
