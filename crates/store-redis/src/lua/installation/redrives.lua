-- Redrives: beginning, holding and ending them. `prelude/redrives.lua` describes the stored data.

-- begin_redrive: begins a redrive.
-- KEYS  installation
-- ARGV  id (8 bytes), its filter and rate, how many redrives may run at once, how long ended redrives are kept
--   (ms), and how many
-- Returns the redrive, begun now or by the same id before; '' if too many run
function edges.begin_redrive(args)
  tick()
  local id = args[1]
  local known = redrives.get(id)
  if known then return known end
  if call('ZCARD', redrives.running()) >= tonumber(args[3]) then return '' end
  local redrive = char(redrives.RUNNING) .. six(NOW) .. NO_TIME .. redrives.NOT_KNOWN .. NO_LEASE .. args[2]
  redrives.put(id, redrive)
  call('ZADD', redrives.running(), 0, id)
  redrives.evict(tonumber(args[4]), tonumber(args[5]))
  publish('revival')
  return redrive
end

-- take_redrive: takes a running redrive that has no holder.
-- KEYS  installation
-- ARGV  holder (8 bytes), for how long (ms), the longest claim of any holder (ms)
-- Returns {0, id, redrive}, or {ms until the next one can be taken, -1 if none runs, '', ''}
function edges.take_redrive(args)
  tick()
  redrives.shorten(tonumber(args[3]))
  local running = redrives.running()
  for _ = 1, 16 do
    local first = call('ZRANGE', running, 0, 0, 'WITHSCORES')
    if not first[2] or tonumber(first[2]) > NOW then break end
    local id = first[1]
    local redrive = redrives.get(id)
    if redrive and byte(redrive) == redrives.RUNNING then
      local taken = redrives.with_holder(redrive, args[1])
      redrives.put(id, taken)
      call('ZADD', running, NOW + tonumber(args[2]), id)
      return {0, id, taken}
    end
    call('ZREM', running, id)
  end
  return {redrives.next_free(), '', ''}
end

-- keep_redrive: the holder of a redrive keeps it for longer, or gives it back.
-- KEYS  installation
-- ARGV  id (8 bytes), holder (8 bytes), for how long (ms; 0 to give it back)
-- Returns 1, or 0 if it has ended or has another holder
function edges.keep_redrive(args)
  tick()
  local redrive, ttl = redrives.get(args[1]), tonumber(args[3])
  if not redrive or byte(redrive) ~= redrives.RUNNING or redrives.holder(redrive) ~= args[2] then return 0 end
  call('ZADD', redrives.running(), ttl > 0 and NOW + ttl or 0, args[1])
  if ttl == 0 then publish('revival') end
  return 1
end

-- end_redrive: ends a redrive, if it runs, and stores the number of revived jobs, if it was not known before.
-- KEYS  installation
-- ARGV  id (8 bytes), its holder (8 bytes, '' for anybody), the state to end in, how many jobs were revived
--   ('' if that is not known yet)
-- Returns the redrive as it is then; '' if there is none
function edges.end_redrive(args)
  tick()
  local id, holder, total = args[1], args[2], args[4]
  local redrive = redrives.get(id)
  if not redrive then return '' end
  local known = total == '' and redrives.NOT_KNOWN or six(tonumber(total))
  if byte(redrive) == redrives.RUNNING then
    if holder ~= '' and redrives.holder(redrive) ~= holder then return redrive end
    redrive = char(tonumber(args[3])) .. sub(redrive, 2, 7) .. six(NOW) .. known .. sub(redrive, 20)
    redrives.put(id, redrive)
    call('ZREM', redrives.running(), id)
  elseif sub(redrive, 14, 19) == redrives.NOT_KNOWN and total ~= '' then
    redrive = sub(redrive, 1, 13) .. known .. sub(redrive, 20)
    redrives.put(id, redrive)
  end
  return redrive
end

-- redrives: the running redrives, and those that ended not long ago.
-- KEYS  installation
-- ARGV  id (8 bytes), '' for all
-- Returns {id, redrive, ...}
function edges.redrives(args)
  if args[1] == '' then return call('HGETALL', redrives.all()) end
  local redrive = redrives.get(args[1])
  return redrive and {args[1], redrive} or {}
end
