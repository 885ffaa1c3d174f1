-- Feeds: leases them to processes, and moves their positions. Each is a hash of the installation, which expires after
-- long disuse: `holder` and `until`, `at` (a position), and `disturbances`.

local function feed_key(name) return K .. ':feed:' .. name end

local function stored_feed(key)
  local row = call('HMGET', key, 'holder', 'until', 'at', 'disturbances')
  return {holder = row[1] or '', till = tonumber(row[2]) or 0, at = row[3] or '', disturbances = tonumber(row[4]) or 0}
end

-- hold_feed: leases a free feed to a process, extends or ends its lease, and moves the position of its feed.
-- KEYS  installation
-- ARGV  name, process, for how long (ms; 0 to give it back), the longest lease of any process (ms), how long an unused
--   feed is kept (ms), the position that is known, the one that takes its place or '' for none
-- Returns {1 if the process has it, else 0; ms until the process that has it loses it; position or ''; disturbances}
function scripts.hold_feed(args)
  tick()
  local key, me, ttl = feed_key(args[1]), args[2], tonumber(args[3])
  local feed = stored_feed(key)
  local left, longest = feed.till - NOW, tonumber(args[4])
  if left > longest then
    -- The lease was stored before the clock was set back.
    left = longest
    call('HSET', key, 'until', string.format('%.0f', NOW + longest))
  end
  if feed.holder ~= me and feed.holder ~= '' and left > 0 then return {0, left, feed.at, feed.disturbances} end
  if ttl == 0 then
    call('HDEL', key, 'holder', 'until')
    return {0, 0, feed.at, feed.disturbances}
  end
  call('HSET', key, 'holder', me, 'until', string.format('%.0f', NOW_UP + ttl))
  if args[7] ~= '' and args[6] == feed.at then
    feed.at = args[7]
    call('HSET', key, 'at', feed.at)
  end
  call('PEXPIRE', key, args[5])
  return {1, 0, feed.at, feed.disturbances}
end

-- change_feed: sets the position of a feed, counts a disturbance, both or neither, whoever has the lease; and reads the
--   feed.
-- KEYS  installation
-- ARGV  name, how long an unused feed is kept (ms), position or '', '1' for a disturbance or ''
-- Returns {position or '', disturbances}
function scripts.change_feed(args)
  local key = feed_key(args[1])
  if args[3] ~= '' then call('HSET', key, 'at', args[3]) end
  if args[4] ~= '' then call('HINCRBY', key, 'disturbances', 1) end
  if args[3] ~= '' or args[4] ~= '' then call('PEXPIRE', key, args[2]) end
  local feed = stored_feed(key)
  return {feed.at, feed.disturbances}
end
