-- Lateness of deliveries: a histogram per minute, each a hash that is kept for seven minutes.
local lateness = {}

function lateness.minute() return floor(NOW / 60000) end
function lateness.key(minute) return KEY.late .. minute end

-- By shard: the minute of the last call, the key of its histogram, and the greatest lateness in it.
local last_minute, last_key, last_max = {}, {}, {}

-- Where the greatest lateness (us) and the buckets begin among the numbers of a settle.
local MOST_AT, BUCKETS_AT, BUCKET = 17, 25, 16

-- Adds buckets, given by the numbers of a settle, to the histogram of the current minute: counts are added, of `max` the
-- greater one stays. The first time in a minute, sets the expiry.
function lateness.add(numbers)
  local size = #numbers
  if size < BUCKETS_AT then return end
  local minute, most = lateness.minute(), (read('<d', numbers, MOST_AT))
  local is_known = last_minute[K] == minute
  local key = is_known and last_key[K] or lateness.key(minute)
  local names, more, sums = {}, {}, {}
  -- Most calls have one bucket, which the histogram has too.
  local is_counted = false
  if size < BUCKETS_AT + BUCKET and is_known and most <= last_max[K] then
    local bucket, count = read('<dd', numbers, BUCKETS_AT)
    if call('HINCRBY', key, whole(bucket), whole(count)) > count then return end
    is_counted = true
  end
  for at = is_counted and size or BUCKETS_AT, size - 1, BUCKET do
    local bucket, count = read('<dd', numbers, at)
    names[#names + 1], more[#more + 1] = whole(bucket), count
  end
  names[#names + 1], more[#more + 1] = 'max', most
  local known = fetch(key, names)
  for i, name in ipairs(names) do
    local n = tonumber(known[i] or 0)
    sums[2 * i - 1], sums[2 * i] = name, whole(name == 'max' and max(n, more[i]) or n + more[i])
  end
  call('HSET', key, unpack(sums))
  -- `max` comes last and is in every minute that was written, so it is missing only in a new one.
  if not known[#names] then call('PEXPIRE', key, 420000) end
  last_minute[K], last_key[K], last_max[K] = minute, key, tonumber(sums[#sums])
end
