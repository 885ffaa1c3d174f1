-- Lateness: a hash of buckets a minute, kept for seven.
local function minute() return math.floor(NOW / 60000) end
local function lateness(m) return K .. ':late:' .. m end
local function write_lateness(text)
  if text == '' then return end
  local key, longest = lateness(minute()), 0
  for name, n in string.gmatch(text, '(%w+):(%d+)') do
    if name == 'max' then longest = tonumber(n) else call('HINCRBY', key, name, n) end
  end
  if longest > tonumber(call('HGET', key, 'max') or -1) then
    call('HSET', key, 'max', longest)
    call('PEXPIRE', key, 420000)
  end
end
