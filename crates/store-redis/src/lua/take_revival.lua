-- take_revival: somebody takes a revival that nobody works on. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  holder (8 bytes), for how long (ms)
-- Returns {id, revival}; {ms until the next one can be taken, or -1 where none goes on}
function edges.take_revival(args)
  tick()
  local running = revivals.running()
  for _ = 1, 16 do
    local first = call('ZRANGE', running, 0, 0, 'WITHSCORES')
    if not first[2] or tonumber(first[2]) > NOW then return {revivals.next_free()} end
    local id = first[1]
    local raw = revivals.get(id)
    if raw and byte(raw) == revivals.RUNNING then
      local taken = revivals.with_holder(raw, args[1])
      revivals.put(id, taken)
      call('ZADD', running, NOW + tonumber(args[2]), id)
      return {id, taken}
    end
    call('ZREM', running, id)
  end
  return {revivals.next_free()}
end
