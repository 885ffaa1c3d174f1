-- Lateness: a hash of buckets a minute, kept for seven.
local function minute() return floor(NOW / 60000) end
local function lateness(m) return KEY.late .. m end
local function write_lateness(text)
  if text == '' then return end
  local key, names, more, sums = lateness(minute()), {}, {}, {}
  for name, n in string.gmatch(text, '(%w+):(%d+)') do
    names[#names + 1], more[#more + 1] = name, tonumber(n)
  end
  local known = call('HMGET', key, unpack(names))
  for i, name in ipairs(names) do
    local n = tonumber(known[i] or 0)
    sums[2 * i - 1], sums[2 * i] = name, name == 'max' and max(n, more[i]) or n + more[i]
  end
  call('HSET', key, unpack(sums))
  -- The longest is always the last of them, so it is missing only in a new minute.
  if not known[#names] then call('PEXPIRE', key, 420000) end
end
