-- One job: its data, and the log of its attempts.
local GET = union(tombs.FIELDS, schedule.FIELDS)
local ATTEMPTS = union(tombs.FIELDS, logs.FIND_FIELDS)

-- get: the data of a job.
-- KEYS  shard
-- ARGV  locator
-- Returns {state, job state or '', record's start}, {tombstone} or {}
function edges.get(args)
  local loc = args[1]
  shard.begin(GET)
  local raw, s, tomb = tombs.find(loc)
  if raw then return {schedule.code(loc, raw, s), s or '', record.start(raw)} end
  return tomb and {tomb} or {}
end

-- get_stored: everything that is stored of a job.
-- KEYS  shard
-- ARGV  locator
-- Returns {state, job state or '', lane name or '' if that is not known, record}, {tombstone} or {}
function edges.get_stored(args)
  local loc = args[1]
  shard.begin(GET)
  local raw, s, tomb = tombs.find(loc)
  if not raw then return tomb and {tomb} or {} end
  local lane = record.lane(raw)
  shard.load_rows({lane})
  return {schedule.code(loc, raw, s), s or '', lanes.name(lane) or '', raw}
end

-- attempts: the log of a job's attempts.
-- KEYS  shard
-- ARGV  locator
-- Returns {now (ms), when the job was created (6 bytes) or '' if that is not known, log or ''}
function edges.attempts(args)
  local loc = args[1]
  shard.begin(ATTEMPTS)
  local raw, s, tomb = tombs.find(loc)
  local created = raw and jobs.created(raw, s) or tomb and tombs.created(tomb) or ''
  local found = logs.find({loc})
  return {NOW, created, found[loc] or ''}
end
