-- Bulk operations. A bulk operation changes many jobs; the carrier that has claimed it does the work. They belong to the
-- installation: the stored hash `bulks` has all of them, and `reviving` has the running ones by the time at which the
-- claim expires. Each shard counts its changed jobs under `bulk:<id>`, in the call that changes them.
--
-- A bulk operation is state, started, ended (6 bytes each), the final number of changed jobs (6 bytes, NOT_KNOWN
-- before), its holder (8), and its target and rate. Its id is the token of its moves.
-- Uses due_index, order, records, shard.
local bulks = {
  RUNNING = 1, DONE = 2, STOPPED = 3,
  NOT_KNOWN = string.rep('\255', 6),
  -- The answer of a call that changes jobs, if the operation is closed in the shard.
  CLOSED = {-1, {}},
}

function bulks.all() return K .. ':bulks' end
function bulks.running() return K .. ':reviving' end
function bulks.progress(id) return K .. ':bulk:' .. id end

function bulks.get(id)
  local bulk = call('HGET', bulks.all(), id)
  return bulk and #bulk >= 27 and bulk
end
function bulks.put(id, bulk) call('HSET', bulks.all(), id, bulk) end
function bulks.holder(bulk) return sub(bulk, 20, 27) end
function bulks.with_holder(bulk, holder) return sub(bulk, 1, 19) .. holder .. sub(bulk, 28) end

-- Returns the ms until the first running bulk operation can be claimed, 0 for now; -1 if none runs. Shortens claims that
-- last longer than `longest` ms from now to that: they were stored before the clock was set back.
function bulks.next_free(longest)
  local first = call('ZRANGE', bulks.running(), 0, 0, 'WITHSCORES')
  if not first[2] then return -1 end
  local late = call('ZRANGE', bulks.running(), string.format('(%.0f', NOW + longest), '+inf', 'BYSCORE')
  for _, id in ipairs(late) do call('ZADD', bulks.running(), NOW + longest, id) end
  return min(longest, max(0, tonumber(first[2]) - NOW))
end

-- Removes bulk operations that ended more than `keep` ms ago, and all ended ones but the last `most` - 1.
function bulks.evict(keep, most)
  local ended, all = {}, call('HGETALL', bulks.all())
  for i = 1, #all, 2 do
    if byte(all[i + 1]) ~= bulks.RUNNING then ended[#ended + 1] = {read('>I6', all[i + 1], 8), all[i]} end
  end
  table.sort(ended, function(a, b) return a[1] > b[1] end)
  for i, one in ipairs(ended) do
    if i >= most or one[1] + keep < NOW then call('HDEL', bulks.all(), one[2]) end
  end
end

-- Begins a call that changes jobs. Each has four arguments after the first `base`: its locator, and the code of its
-- state, its job state or '', and its record without its payload, as the caller has read them. Returns the jobs that
-- have not changed since and that this operation has not moved before, with locator, record, job state, lane and code;
-- and the indexes, from 1, of the jobs that have changed. Returns nil if the operation is closed in this shard.
function bulks.begin(args, base)
  shard.begin()
  order.promote_due()
  if call('HEXISTS', bulks.progress(args[1]), 'over') == 1 then return nil end
  local locs, found, changed = {}, {}, {}
  for i = base + 1, #args, 4 do locs[#locs + 1] = args[i] end
  jobs.load(locs)
  for n, loc in ipairs(locs) do
    local raw, s, i = records[loc], states[loc] or false, base + 4 * n
    local code = raw and due_index.code(loc, raw, s)
    if not raw or code ~= tonumber(args[i - 2]) or (s or '') ~= args[i - 1] or record.head(raw) ~= args[i] then
      changed[#changed + 1] = n
    elseif not s or state.move_token(s) ~= args[1] then
      found[#found + 1] = {loc = loc, raw = raw, state = s, lane = record.lane(raw), code = code}
    end
  end
  return found, changed
end

-- Closes such a call, which has changed `n` jobs: counts them, keeps the count for args[2] ms, and writes the shard's
-- fields. Returns the answer.
function bulks.close(args, n, changed)
  if n > 0 then
    local progress = bulks.progress(args[1])
    call('HINCRBY', progress, 'revived', n)
    call('PEXPIRE', progress, args[2])
    shard.close()
  end
  return {n, changed}
end
