-- audit_lanes: looks at a page of lanes: how many jobs each is said to have, and whether what it
-- has is led to. No edge; changes nothing.
-- KEYS  shard
-- ARGV  where to read on ('0' is the start), the server's life that this belongs to, about how many
-- Returns {life, where to go on ('0' is the end), {lane, jobs, lane in words, ...}, {lane, lane in words, ...} of
--   those without their turn}; {life} when it is another one
function edges.audit_lanes(args)
  begin({'slot'})
  local life = audits.life()
  if args[1] ~= '0' and args[2] ~= life then return {life} end
  local scanned = call('HSCAN', KEY.shard, args[1], 'COUNT', args[3])
  local rows, lost = {}, {}
  for i = 1, #scanned[2], 2 do
    local lane, row = scanned[2][i], scanned[2][i + 1]
    if audits.is_row(lane, row) then
      local n, words = #rows, sub(row, 11)
      rows[n + 1], rows[n + 2], rows[n + 3] = lane, (read('>I6', row)), words
      if next(audits.lacks(lane)) then lost[#lost + 1], lost[#lost + 2] = lane, words end
    end
  end
  return {life, scanned[1], rows, lost}
end
