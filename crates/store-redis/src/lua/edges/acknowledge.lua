-- acknowledge: removes delivered dead-letter notices from the outbox, and postpones those that failed.
-- KEYS  shard
-- ARGV  epoch, how many were delivered, their entries; then per failed notice: ms until the next attempt, entry
-- Returns {} fenced, or {us until the next notice, -1 for none}
local ACKNOWLEDGE = union(carrier.EPOCH_FIELDS, outbox.FIELDS)

function edges.acknowledge(args)
  shard.begin(ACKNOWLEDGE)
  if carrier.is_fenced(args[1]) then return {} end
  local delivered, later = {}, {}
  local n = tonumber(args[2])
  for i = 1, n do delivered[i] = args[2 + i] end
  for i = 3 + n, #args, 2 do
    later[#later + 1], later[#later + 2] = NOW_UP + tonumber(args[i]), args[i + 1]
  end
  if #later > 0 then call('ZADD', KEY.outbox, 'XX', unpack(later)) end
  local first = first_score(KEY.outbox, delivered)
  sliced('ZREM', KEY.outbox, delivered)
  if first ~= fields.next_notice_at then shard.set('next_notice_at', first) end
  shard.close()
  return {outbox.wait(first)}
end
