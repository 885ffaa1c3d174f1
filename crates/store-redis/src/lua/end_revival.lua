-- end_revival: its holder is done with it, or somebody stops it. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  id (8 bytes), holder (8 bytes, '' for anybody), the state to end in, how many jobs were
--   revived, '' when that is not known yet
-- Returns the revival as it is then; '' when there is none
function edges.end_revival(args)
  tick()
  local id, holder, total = args[1], args[2], args[4]
  local raw = revivals.get(id)
  if not raw then return '' end
  local known = total == '' and revivals.NOT_KNOWN or six(tonumber(total))
  if byte(raw) == revivals.RUNNING then
    if holder ~= '' and revivals.holder(raw) ~= holder then return raw end
    raw = char(tonumber(args[3])) .. sub(raw, 2, 7) .. six(NOW) .. known .. sub(raw, 20)
    revivals.put(id, raw)
    call('ZREM', revivals.running(), id)
  elseif sub(raw, 14, 19) == revivals.NOT_KNOWN and total ~= '' then
    raw = sub(raw, 1, 13) .. known .. sub(raw, 20)
    revivals.put(id, raw)
  end
  return raw
end
