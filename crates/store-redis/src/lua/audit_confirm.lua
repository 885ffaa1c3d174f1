-- audit_confirm: whether jobs that seemed lost are. No edge; changes nothing.
-- KEYS  shard
-- ARGV  per job: what was known of it (locator, due, lane, attempts: 30 bytes; or the locator alone),
--   and the state it was to be found in, 0 where that is not a list
-- Returns per job: {} where it has moved on; {'again', state}; {'lost', state, lane in words,
--   record's start}
function edges.audit_confirm(args)
  audits.begin({'slot'})
  local locs, lanes = {}, {}
  for i = 1, #args, 2 do locs[#locs + 1] = sub(args[i], 1, 12) end
  load(locs)
  for _, loc in ipairs(locs) do if records[loc] then lanes[#lanes + 1] = lane_of(records[loc]) end end
  rows_load(lanes)
  local answers = {}
  for i, loc in ipairs(locs) do
    local what, st = audits.judge(loc, args[2 * i - 1], tonumber(args[2 * i]))
    local raw = records[loc]
    if what == 'lost' then
      answers[i] = {what, st, lane_words(lane_of(raw)) or '', sub(raw, 1, RECORD + byte(raw, RECORD))}
    else
      answers[i] = {what, what and st}
    end
  end
  return answers
end
