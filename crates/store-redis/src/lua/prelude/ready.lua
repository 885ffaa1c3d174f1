-- Ready queues: a list of entries per lane (topic and origin), and `lanes`: those that are
-- not empty, in turn. An entry names a job and the due time it was promoted for. Lanes for
-- pull, told by the first bit of their id, stand in `pulls` instead: consumers ask for them by
-- name, and are told when one is no longer empty.
local ready_for, is_woken

local function queue(lane) return KEY.ready .. lane end
local function is_pull(lane) return byte(lane) >= 128 end
local function wake_consumers(lane)
  tell('pull ' .. KEY.tag .. ' ' .. string.gsub(lane, '.', function(c) return string.format('%02x', byte(c)) end))
end

-- `push` is RPUSH, or LPUSH for those handed over again.
local function ready_push(lane, entries, push)
  if sliced(push, queue(lane), entries) > #entries then return end
  call('ZADD', is_pull(lane) and KEY.pulls or KEY.lanes, 'NX', NOW_US, lane)
  if is_pull(lane) then wake_consumers(lane) else is_woken = true end
end
-- Carries out what is in `ready_for`: lane -> list of entries.
local function save_ready(push)
  for lane, entries in pairs(ready_for) do ready_push(lane, entries, push) end
end
local function wake_takers() if is_woken then tell('ready ' .. KEY.tag) end end
