-- Failing destinations: reads and changes a hash of texts by name. The callers decide what the texts say.

local function failing_key() return K .. ':failing' end

-- failing: reads all texts.
-- KEYS  installation
-- ARGV  none
-- Returns {now (ms), {name, text, ...}}
function scripts.failing()
  tick()
  return {NOW, call('HGETALL', failing_key())}
end

-- change_failing: replaces texts, if no other caller has changed any of them. Allowed when memory is full, because their
-- number is bounded.
-- KEYS  installation
-- ARGV  for each: name, the text that is there or '', the one that takes its place or '' to remove it
-- Returns 1, or 0 if a text is another one and nothing was replaced
function scripts.change_failing(args)
  local key = failing_key()
  for i = 1, #args, 3 do
    if (call('HGET', key, args[i]) or '') ~= args[i + 1] then return 0 end
  end
  for i = 1, #args, 3 do
    local name, after = args[i], args[i + 2]
    if after == '' then call('HDEL', key, name) else call('HSET', key, name, after) end
  end
  return 1
end
