-- Lateness of deliveries: a histogram per minute, each a hash that is kept for seven minutes.
local lateness = {}

function lateness.minute() return floor(NOW / 60000) end
function lateness.key(minute) return KEY.late .. minute end

-- By shard: the histogram of the last call, and the greatest lateness in it.
local last_key, last_max = {}, {}

-- Adds buckets ("bucket:count ... max:us") to the histogram of the current minute: counts are added, of `max` the greater
-- one stays. The first time in a minute, sets the expiry.
function lateness.add(text)
  if text == '' then return end
  local key = lateness.key(lateness.minute())
  -- Most calls have one bucket, which the histogram has too.
  local bucket, count, most = string.match(text, '^(%d+):(%d+) max:(%d+)$')
  if bucket and last_key[K] == key and tonumber(most) <= last_max[K] then
    if call('HINCRBY', key, bucket, count) > tonumber(count) then return end
    text = 'max:' .. most
  end
  local names, more, sums = {}, {}, {}
  for name, n in string.gmatch(text, '(%w+):(%d+)') do
    names[#names + 1], more[#more + 1] = name, tonumber(n)
  end
  local known = call('HMGET', key, unpack(names))
  for i, name in ipairs(names) do
    local n = tonumber(known[i] or 0)
    sums[2 * i - 1], sums[2 * i] = name, whole(name == 'max' and max(n, more[i]) or n + more[i])
  end
  call('HSET', key, unpack(sums))
  -- `max` comes last and is in every minute that was written, so it is missing only in a new one.
  if not known[#names] then call('PEXPIRE', key, 420000) end
  last_key[K], last_max[K] = key, tonumber(sums[#sums])
end
