#!lua flags=no-writes
-- page: reads on through the jobs that have not ended. No edge; changes nothing.
-- KEYS  shard
-- ARGV  where to read on ('0' is the start), the server's life that this belongs to, how many
--   jobs to look at, how many at a time, state or 0, topic or '', 1 when payloads are wanted,
--   byte budget
-- Returns {life, where to go on ('0' is the end), locator, head, record, ...}, the record
--   without its payload unless that is wanted; or {life} when it is another one
local at, left, step, wanted = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local topic, whole, budget = ARGV[6], ARGV[7] == '1', tonumber(ARGV[8])

-- Where a job stands in a hash is known to one life of a server only.
local life = sub(string.match(call('INFO', 'server'), 'run_id:(%x+)') or '', 1, 8)
if at ~= '0' and ARGV[2] ~= life then return {life} end

local function without_payload(raw)
  local high, low = byte(raw, 29, 30)
  return sub(raw, 1, 30 + high * 256 + low + byte(raw, 28))
end

local answer = {life, at}
local function give(loc)
  local h, raw = heads[loc], records[loc]
  if not h or wanted > 0 and state(h) ~= wanted then return end
  local n = #answer
  answer[n + 1], answer[n + 2], answer[n + 3] = loc, h, whole and raw or without_payload(raw)
  -- What lies in a key of its own is read afterwards, and counts here.
  if whole and has(h, EXTERNAL) then budget = budget - read('>I4', raw, #raw - 3) end
end

-- By a few at a time, so that it ends near the budget: what a scan has passed is not met again.
for _ = 1, math.ceil(left / step) do
  local scanned = call('HSCAN', POOL, at, 'COUNT', step)
  at = scanned[1]
  local locs, found = {}, scanned[2]
  for i = 1, #found, 2 do
    local loc, raw = found[i], record(found[i + 1])
    records[loc] = raw
    budget = budget - #found[i + 1]
    if raw and (topic == '' or topic_of(loc) == topic) then locs[#locs + 1] = loc end
  end
  for i, own in ipairs(fetch(HEADS, locs)) do
    heads[locs[i]] = own and head(own) or not own and sub(records[locs[i]], 1, HEAD)
    give(locs[i])
  end
  left = left - #found / 2
  if at == '0' or left <= 0 or budget <= 0 then break end
end
answer[2] = at
return answer
