-- archive_status: the archive outbox.
-- KEYS  shard
-- ARGV  none
-- Returns {the field `archive`, the number of the first entry, how many there are, bytes, bound, dropped, when the first job
--   ended (ms) or 0, how many entries the list has}
function edges.archive_status()
  shard.begin(archive.FIELDS)
  local answer = {fields.archive}
  for i, name in ipairs(archive.FIELDS) do answer[i + 1] = fields[name] end
  answer[#answer + 1] = fields.archive_count > 0 and archive.oldest() or 0
  answer[#answer + 1] = call('LLEN', KEY.archived_list)
  return answer
end
