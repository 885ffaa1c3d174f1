-- What edges are made of that are also made one call together.
local parts = {}

-- One call: all that the pieces gather is empty at its start.
local function start(base)
  K, KEY = base, known_keys[base] or keys_of(base)
  NOW_US = nil
  topics.start()
  forget_loaded()
  due_for, slot_for = {}, {}
  ready_for, is_woken = {}, false
  graves, buried, gone, unlinks = {}, {}, {}, {}
  new, words_of = {}, nil
end
