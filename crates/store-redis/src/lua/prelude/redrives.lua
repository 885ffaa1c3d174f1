-- Redrives: each revives many dead jobs, worked on by the carrier that holds it. They belong to the
-- installation: `revivals` (a stored name) has each redrive, and `reviving` the running ones by when their
-- holder's time runs out. Each shard counts the jobs that it has revived, under `revival:<id>`, in the
-- call that revives them.
--
-- A redrive is state, started, ended (6 bytes each), the number of revived jobs once it is final (6 bytes,
-- else NOT_KNOWN), its holder (8), and what it is to do.
local redrives = {RUNNING = 1, DONE = 2, STOPPED = 3, NOT_KNOWN = string.rep('\255', 6)}

function redrives.all() return K .. ':revivals' end
function redrives.running() return K .. ':reviving' end
function redrives.progress(id) return K .. ':revival:' .. id end

function redrives.get(id)
  local redrive = call('HGET', redrives.all(), id)
  return redrive and #redrive >= 27 and redrive
end
function redrives.put(id, redrive) call('HSET', redrives.all(), id, redrive) end
function redrives.holder(redrive) return sub(redrive, 20, 27) end
function redrives.with_holder(redrive, holder) return sub(redrive, 1, 19) .. holder .. sub(redrive, 28) end

-- Ms until the first running one can be taken, -1 where none runs.
function redrives.next_free()
  local first = call('ZRANGE', redrives.running(), 0, 0, 'WITHSCORES')
  return first[2] and max(0, tonumber(first[2]) - NOW) or -1
end

-- Forgets those that ended more than `keep` ms ago, and the oldest where there are more than `most`.
function redrives.forget(keep, most)
  local ended, all = {}, call('HGETALL', redrives.all())
  for i = 1, #all, 2 do
    if byte(all[i + 1]) ~= redrives.RUNNING then ended[#ended + 1] = {read('>I6', all[i + 1], 8), all[i]} end
  end
  table.sort(ended, function(a, b) return a[1] > b[1] end)
  for i, one in ipairs(ended) do
    if i >= most or one[1] + keep < NOW then call('HDEL', redrives.all(), one[2]) end
  end
end
