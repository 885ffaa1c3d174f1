-- audit_confirm: whether jobs that seemed lost are lost.
-- KEYS  shard
-- ARGV  per job: what was known of it (locator, due, lane, attempts: 30 bytes; or the locator alone), and
--   the state whose list was read, 0 where the index is not a list
-- Returns per job {verdict, state, lane name, record's start}: {'', 0, '', ''} where it has moved on;
--   {'again', state, '', ''} where another list must hold it now; {'lost', ...}
function edges.audit_confirm(args)
  audit.begin({'slot'})
  local locs, ids = {}, {}
  for i = 1, #args, 2 do locs[#locs + 1] = sub(args[i], 1, 12) end
  jobs.load(locs)
  for _, loc in ipairs(locs) do if records[loc] then ids[#ids + 1] = record.lane(records[loc]) end end
  shard.load_rows(ids)
  local answers = {}
  for i, loc in ipairs(locs) do
    local verdict, code = audit.judge(loc, args[2 * i - 1], tonumber(args[2 * i]))
    local raw = verdict == 'lost' and records[loc]
    answers[i] = {verdict or '', verdict and code or 0, raw and lanes.name(record.lane(raw)) or '', raw and record.head(raw) or ''}
  end
  return answers
end
