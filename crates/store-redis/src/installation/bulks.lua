-- Bulk operations: begins, claims, ends and lists them. `prelude/bulks.lua` describes the stored data.
-- Uses bulks.

-- begin_bulk: begins a bulk operation.
-- KEYS  installation
-- ARGV  id (8 bytes), its target and rate, how many may run at once, how long those that have ended are kept
--   (ms), and how many
-- Returns the bulk operation, begun now or by the same id before; '' if too many run
function scripts.begin_bulk(args)
  tick()
  local id = args[1]
  local known = bulks.get(id)
  if known then return known end
  if call('ZCARD', bulks.running()) >= tonumber(args[3]) then return '' end
  local bulk = char(bulks.RUNNING) .. six(NOW) .. NO_TIME .. bulks.NOT_KNOWN .. NO_LEASE .. args[2]
  bulks.put(id, bulk)
  call('ZADD', bulks.running(), 0, id)
  bulks.evict(tonumber(args[4]), tonumber(args[5]))
  publish('bulk')
  return bulk
end

-- take_bulk: claims a running bulk operation that has no holder, or whose claim has expired.
-- KEYS  installation
-- ARGV  holder (8 bytes), for how long (ms), the longest claim of any holder (ms)
-- Returns {0, id, bulk operation}, or {ms until the next one can be taken, -1 if none runs, '', ''}
function scripts.take_bulk(args)
  tick()
  local running = bulks.running()
  for _ = 1, 16 do
    local first = call('ZRANGE', running, 0, 0, 'WITHSCORES')
    if not first[2] or tonumber(first[2]) > NOW then break end
    local id = first[1]
    local bulk = bulks.get(id)
    if bulk and byte(bulk) == bulks.RUNNING then
      local taken = bulks.with_holder(bulk, args[1])
      bulks.put(id, taken)
      call('ZADD', running, NOW + tonumber(args[2]), id)
      return {0, id, taken}
    end
    call('ZREM', running, id)
  end
  return {bulks.next_free(tonumber(args[3])), '', ''}
end

-- keep_bulk: extends the claim of a bulk operation's holder, or releases it.
-- KEYS  installation
-- ARGV  id (8 bytes), holder (8 bytes), for how long (ms; 0 to give it back)
-- Returns 1, or 0 if it has ended or has another holder
function scripts.keep_bulk(args)
  tick()
  local bulk, ttl = bulks.get(args[1]), tonumber(args[3])
  if not bulk or byte(bulk) ~= bulks.RUNNING or bulks.holder(bulk) ~= args[2] then return 0 end
  call('ZADD', bulks.running(), ttl > 0 and NOW + ttl or 0, args[1])
  if ttl == 0 then publish('bulk') end
  return 1
end

-- end_bulk: ends a bulk operation, if it runs, and stores the number of changed jobs, if it was not known before.
-- KEYS  installation
-- ARGV  id (8 bytes), its holder (8 bytes, '' for anybody), the state to end in, how many jobs were changed
--   ('' if that is not known yet)
-- Returns the bulk operation as it is then; '' if there is none
function scripts.end_bulk(args)
  tick()
  local id, holder, total = args[1], args[2], args[4]
  local bulk = bulks.get(id)
  if not bulk then return '' end
  local known = total == '' and bulks.NOT_KNOWN or six(tonumber(total))
  if byte(bulk) == bulks.RUNNING then
    if holder ~= '' and bulks.holder(bulk) ~= holder then return bulk end
    bulk = char(tonumber(args[3])) .. sub(bulk, 2, 7) .. six(NOW) .. known .. sub(bulk, 20)
    bulks.put(id, bulk)
    call('ZREM', bulks.running(), id)
  elseif sub(bulk, 14, 19) == bulks.NOT_KNOWN and total ~= '' then
    bulk = sub(bulk, 1, 13) .. known .. sub(bulk, 20)
    bulks.put(id, bulk)
  end
  return bulk
end

-- bulks: reads the running bulk operations and those that are kept after their end, or one of them.
-- KEYS  installation
-- ARGV  id (8 bytes), '' for all
-- Returns {id, bulk operation, ...}
function scripts.bulks(args)
  if args[1] == '' then return call('HGETALL', bulks.all()) end
  local bulk = bulks.get(args[1])
  return bulk and {args[1], bulk} or {}
end
