-- end_redrive: the holder of a redrive is done, or somebody stops it.
-- KEYS  installation
-- ARGV  id (8 bytes), holder (8 bytes, '' for anybody), the state to end in, how many jobs were revived, ''
--   when that is not known yet
-- Returns the redrive as it is then; '' when there is none
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
