-- Starts each call: sets the keys of the shard `base`, and empties everything that the pieces of the prelude read and
-- collect. `name` is the name of the call, and `is_logged` says whether its transitions are returned for the log.
local function start(base, name, is_logged)
  K, KEY = base, known_keys[base] or keys_of(base)
  NOW_US = nil
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
  events.start(name, is_logged)
end
