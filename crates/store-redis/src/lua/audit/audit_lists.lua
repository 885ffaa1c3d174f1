-- audit_lists: reads lists, each from its end to its beginning. Entries only come at the end and go at the
--   beginning, so none is missed.
-- KEYS  shard
-- ARGV  'ready' or 'slot', how many entries of the first list were read before, how many entries to read,
--   and per list its lane or its slot's number
-- Returns {how many lists were read to their beginning, how many entries of the next one were read, {entries
--   of a list, ...}}
function edges.audit_lists(args)
  local base, skip, left = args[1] == 'slot' and KEY.slot or KEY.ready, tonumber(args[2]), tonumber(args[3])
  local done, lists = 0, {}
  for i = 4, #args do
    if left <= 0 then return {done, 0, lists} end
    local entries = call('LRANGE', base .. args[i], -skip - left, -skip - 1)
    lists[#lists + 1] = concat(entries)
    if #entries == left then return {done, skip + left, lists} end
    -- An empty list costs a call too.
    left, skip, done = left - #entries - 5, 0, done + 1
  end
  return {done, 0, lists}
end
