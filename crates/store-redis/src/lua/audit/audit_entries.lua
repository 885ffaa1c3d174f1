-- audit_entries: how many entries a page of lists and sets has.
-- KEYS  shard
-- ARGV  'lanes', 'pulls', 'parked', 'schedule', 'slots' or 'batches', where to read on ('0' is the start),
--   the server's life that this belongs to, about how many
-- Returns {life, where to go on ('0' is the end), entries}; {life} when it is another one
function edges.audit_entries(args)
  shard.begin({})
  local kind, life, sum = args[1], server_life(), 0
  if args[2] ~= '0' and args[3] ~= life then return {life} end
  local scan = kind == 'batches' and 'HSCAN' or 'ZSCAN'
  local scanned = call(scan, KEY[kind], args[2], 'COUNT', args[4])
  for i = 1, #scanned[2], 2 do
    local name = scanned[2][i]
    if kind == 'batches' then
      sum = sum + #scanned[2][i + 1] / 12
    elseif kind == 'schedule' then
      sum = sum + call('ZCARD', schedule.key(name))
    elseif kind == 'parked' then
      local lane = sub(name, -8)
      if not call('ZSCORE', ready.turns(lane), lane) then sum = sum + call('LLEN', ready.key(lane)) end
    else
      sum = sum + call('LLEN', kind == 'slots' and KEY.slot .. name or ready.key(name))
    end
  end
  return {life, scanned[1], floor(sum)}
end
