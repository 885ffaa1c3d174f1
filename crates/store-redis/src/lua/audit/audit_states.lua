-- audit_states: finds job states without a record, a page at a time.
-- KEYS  shard
-- ARGV  where to read on ('0' is the start), the server's life that this belongs to, about how many
-- Returns {life, where to go on ('0' is the end), {locator, ...}}; {life} when it is another one
function edges.audit_states(args)
  local life = server_life()
  if args[1] ~= '0' and args[2] ~= life then return {life} end
  local scanned = call('HSCAN', KEY.states, args[1], 'COUNT', args[3])
  local alone = {}
  for i = 1, #scanned[2], 2 do
    local loc = scanned[2][i]
    if call('HEXISTS', KEY.pool, loc) == 0 then alone[#alone + 1] = loc end
  end
  return {life, scanned[1], alone}
end
