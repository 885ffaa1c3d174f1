-- audit_lists: reads on through lists, each from its end to its beginning: at the end entries
-- only come, and those at the beginning go, so that none is missed. No edge; changes nothing.
-- KEYS  shard
-- ARGV  'ready' or 'slot', how many of the first list were read before, how many entries to read,
--   and per list what it is named by: a lane, or a slot's number
-- Returns {how many lists were read to their beginning, how many entries of the next one were read,
--   the entries of each list that was looked at...}
function edges.audit_lists(args)
  begin({'slot'})
  local base, skip, left = args[1] == 'slot' and KEY.slot or KEY.ready, tonumber(args[2]), tonumber(args[3])
  local answer = {0, 0}
  for i = 4, #args do
    if left <= 0 then break end
    local entries = call('LRANGE', base .. args[i], -skip - left, -skip - 1)
    answer[#answer + 1] = concat(entries)
    if #entries == left then
      answer[2] = skip + left
      break
    end
    -- An empty list costs a call too.
    left, skip, answer[1] = left - #entries - 5, 0, answer[1] + 1
  end
  return answer
end
