-- Before each call: everything that the pieces read and collect is empty.
local function start(base)
  K, KEY = base, known_keys[base] or keys_of(base)
  NOW_US = nil
  topics.start()
  jobs.start()
  schedule.start()
  ready.start()
  tombs.start()
  arrivals.start()
end
