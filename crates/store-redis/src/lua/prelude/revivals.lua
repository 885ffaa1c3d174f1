-- Revivals: calls that revive many dead jobs, worked on by whoever holds one. They are of the
-- installation: `revivals` has what each is, `reviving` those that go on by when their holder's
-- time runs out. How many jobs each has revived is kept by the shards themselves, under
-- `revival:<id>`, in the call that revives them.
--
-- A revival is state, started, ended (6 bytes each), how many jobs it has revived once that is
-- known for good (6 bytes, else NOT_KNOWN), its holder (8), and what it is to do.
local revivals = {RUNNING = 1, DONE = 2, STOPPED = 3, NOT_KNOWN = string.rep('\255', 6)}

function revivals.all() return K .. ':revivals' end
function revivals.running() return K .. ':reviving' end
function revivals.of_shard(id) return K .. ':revival:' .. id end

function revivals.get(id)
  local raw = call('HGET', revivals.all(), id)
  return raw and #raw >= 27 and raw
end
function revivals.put(id, raw) call('HSET', revivals.all(), id, raw) end
function revivals.holder(raw) return sub(raw, 20, 27) end
function revivals.with_holder(raw, holder) return sub(raw, 1, 19) .. holder .. sub(raw, 28) end

-- Ms until the first that goes on can be taken, -1 where none goes on.
function revivals.next_free()
  local first = call('ZRANGE', revivals.running(), 0, 0, 'WITHSCORES')
  return first[2] and max(0, tonumber(first[2]) - NOW) or -1
end

-- Forgets those that ended so long ago (ms), and the oldest where there are more than `most`.
function revivals.forget(keep, most)
  local ended, all = {}, call('HGETALL', revivals.all())
  for i = 1, #all, 2 do
    if byte(all[i + 1]) ~= revivals.RUNNING then ended[#ended + 1] = {read('>I6', all[i + 1], 8), all[i]} end
  end
  table.sort(ended, function(a, b) return a[1] > b[1] end)
  for i, one in ipairs(ended) do
    if i >= most or one[1] + keep < NOW then call('HDEL', revivals.all(), one[2]) end
  end
end
