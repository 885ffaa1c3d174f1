-- take_redrive: takes a running redrive that nobody works on.
-- KEYS  installation
-- ARGV  holder (8 bytes), for how long (ms)
-- Returns {0, id, redrive}; {ms until the next one can be taken, or -1 where none runs, '', ''}
function edges.take_redrive(args)
  tick()
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
