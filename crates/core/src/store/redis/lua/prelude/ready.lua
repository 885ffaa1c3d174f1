-- Ready queues: a list per lane (topic and origin), and `lanes`: those that are not empty,
-- in turn. An entry names a job and the due time it was promoted for.
local function lane_of(loc)
  local raw = records[loc]
  local high, low = byte(raw, 29, 30)
  return sub(raw, 31, 30 + high * 256 + low)
end
local function queue(lane) return K .. ':ready:' .. lane end
local function ready_entry(loc, h) return loc .. sub(h, 7, 12) end

-- ready: lane -> list of entries. `push` is RPUSH, or LPUSH for those handed over again.
local function ready_add(ready, push)
  local woken = false
  for lane, list in pairs(ready) do
    local length = sliced(push, queue(lane), list)
    call('ZADD', K .. ':lanes', 'NX', NOW_US, lane)
    woken = woken or length == #list
  end
  if woken then tell('ready ' .. tag()) end
end
