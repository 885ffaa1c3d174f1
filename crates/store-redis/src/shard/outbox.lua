-- The outbox of notices: reads those that are due (outbox), and removes or postpones them (acknowledge).
-- outbox: the first notices that are to be published by now.
-- KEYS  shard
-- ARGV  limit, about how many bytes
-- Returns {now (ms), {entry, ...}}
-- Uses carrier, outbox, shard.
local STEP = 10

-- Adds the entries between two scores to `entries`, up to `limit` and `left` bytes in all. Returns the bytes left.
local function add(entries, low, high, limit, left)
  local before = #entries
  while #entries < limit and left > 0 do
    local n = min(STEP, limit - #entries)
    local found = call('ZRANGE', KEY.outbox, low, high, 'BYSCORE', 'LIMIT', #entries - before, n)
    for _, entry in ipairs(found) do
      entries[#entries + 1] = entry
      left = left - #entry
    end
    if #found < n then break end
  end
  return left
end

function scripts.outbox(args)
  tick()
  local entries, limit = {}, tonumber(args[1])
  local left = add(entries, '-inf', NOW, limit, tonumber(args[2]))
  -- Entries that were stored before the clock was set back.
  add(entries, string.format('(%.0f', NOW_UP + outbox.LONGEST), '+inf', limit, left)
  return {NOW, entries}
end

-- acknowledge: removes published notices from the outbox, and postpones those that failed.
-- KEYS  shard
-- ARGV  epoch, how many were published, their entries; then per failed notice: ms until the next attempt, entry
-- Returns {} if another carrier has the shard, or {us until the next notice, -1 for none}

function scripts.acknowledge(args)
  shard.begin()
  if carrier.is_fenced(args[1]) then return {} end
  local delivered, later = {}, {}
  local n = tonumber(args[2])
  for i = 1, n do delivered[i] = args[2 + i] end
  for i = 3 + n, #args, 2 do
    later[#later + 1], later[#later + 2] = NOW_UP + tonumber(args[i]), args[i + 1]
  end
  if #later > 0 then call('ZADD', KEY.outbox, 'XX', unpack(later)) end
  local first = first_score(KEY.outbox, delivered)
  sliced('ZREM', KEY.outbox, delivered)
  if first ~= fields.next_notice_at then shard.set('next_notice_at', first) end
  shard.close()
  return {outbox.wait(first)}
end
