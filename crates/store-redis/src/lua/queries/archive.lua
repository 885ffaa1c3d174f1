-- archive_status: the archive outbox.
-- KEYS  shard
-- ARGV  none
-- Returns {the field `archive`, how many entries there are, bytes, bound, dropped, when the first job ended (ms) or 0}
function edges.archive_status()
  shard.begin(archive.FIELDS)
  return {
    fields.archive, archive.count(), fields.archive_bytes, fields.archive_bound, fields.archive_dropped, archive.oldest(),
  }
end
