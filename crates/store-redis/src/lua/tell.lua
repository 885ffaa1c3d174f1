-- tell: deaths that were told leave the outbox, those that could not be told stay there for later.
-- KEYS  shard
-- ARGV  epoch, how many were told, their entries; then per one that stays: ms until it is to be told
--   again, entry
-- Returns {} fenced, or {us until the next is to be told, -1 for none}
local TELL = {'epoch', 'tell_at'}

function edges.tell(args)
  begin(TELL)
  if is_fenced(args[1]) then return {} end
  local told, later = {}, {}
  local n = tonumber(args[2])
  for i = 1, n do told[i] = args[2 + i] end
  for i = 3 + n, #args, 2 do
    later[#later + 1], later[#later + 2] = NOW_UP + tonumber(args[i]), args[i + 1]
  end
  if #later > 0 then call('ZADD', KEY.outbox, 'XX', unpack(later)) end
  local first = first_score(KEY.outbox, told)
  sliced('ZREM', KEY.outbox, told)
  if first ~= shard.tell_at then set('tell_at', first) end
  close()
  return {first > 0 and until_ms(first) or -1}
end
