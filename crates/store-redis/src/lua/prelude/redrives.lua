-- Redrives. A redrive revives many dead jobs; the carrier that holds it does the work. Redrives belong to the
-- installation: the stored hash `revivals` has all of them, and `reviving` has the running ones by the time at
-- which their holder's claim expires. Each shard counts its revived jobs under `revival:<id>`, in the call that
-- revives them.
--
-- A redrive is state, started, ended (6 bytes each), the final number of revived jobs (6 bytes, NOT_KNOWN before),
-- its holder (8), and its filter and rate.
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

-- Ends claims `longest` ms from now if they last for longer: they were stored before the clock was set back.
function redrives.shorten(longest)
  local late = call('ZRANGE', redrives.running(), string.format('(%.0f', NOW + longest), '+inf', 'BYSCORE')
  for _, id in ipairs(late) do call('ZADD', redrives.running(), NOW + longest, id) end
end

-- Ms until the first running redrive can be taken, -1 if none runs.
function redrives.next_free()
  local first = call('ZRANGE', redrives.running(), 0, 0, 'WITHSCORES')
  return first[2] and max(0, tonumber(first[2]) - NOW) or -1
end

-- Removes redrives that ended more than `keep` ms ago, and all ended ones but the last `most`.
function redrives.evict(keep, most)
  local ended, all = {}, call('HGETALL', redrives.all())
  for i = 1, #all, 2 do
    if byte(all[i + 1]) ~= redrives.RUNNING then ended[#ended + 1] = {read('>I6', all[i + 1], 8), all[i]} end
  end
  table.sort(ended, function(a, b) return a[1] > b[1] end)
  for i, one in ipairs(ended) do
    if i >= most or one[1] + keep < NOW then call('HDEL', redrives.all(), one[2]) end
  end
end
