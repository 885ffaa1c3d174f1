-- How a call begins. `enter` sets the keys of the shard `base`; `start` empties everything that the pieces of the prelude
-- read and collect. `name` is the name of the call, and `is_logged` says whether its transitions are returned for the
-- log.
--
-- A script may have a fast path for its common case, in `fast` under its name. It runs before `start` and returns the
-- answer, or nil if the case is another, and then has written nothing. It is not tried for the shards in `is_uncommon`.
local fast = {}
local function enter(base)
  K, KEY = base, known_keys[base] or keys_of(base)
  NOW_US = nil
end

local function start(name, is_logged)
  shard.start()
  topics.start()
  destinations.start()
  jobs.start()
  tag_index.start()
  due_index.start()
  ready.start()
  oldest.start()
  tombs.start()
  arrivals.start()
  order.start()
  events.start(name, is_logged)
end
