-- Ready queues: a list of entries per lane (topic and origin), and `lanes`: those that are
-- not empty, in turn. An entry names a job and the due time it was promoted for.
local ready_for, is_woken

local function queue(lane) return KEY.ready .. lane end

-- `push` is RPUSH, or LPUSH for those handed over again.
local function ready_push(lane, entries, push)
  if sliced(push, queue(lane), entries) == #entries then
    call('ZADD', KEY.lanes, 'NX', NOW_US, lane)
    is_woken = true
  end
end
-- Carries out what is in `ready_for`: lane -> list of entries.
local function save_ready(push)
  for lane, entries in pairs(ready_for) do ready_push(lane, entries, push) end
end
local function wake_takers() if is_woken then tell('ready ' .. KEY.tag) end end
