-- The archive outbox: attaching an archive, taking the first entries and removing them.
local TAKE = union(archive.FIELDS, logs.FIND_FIELDS)

-- attach_archive: says which ends get an entry, or with 0 that none do.
-- KEYS  shard
-- ARGV  the field `archive` without its bits of fullness, how many bytes the entries may take
-- Returns 1
function edges.attach_archive(args)
  shard.begin(archive.FIELDS)
  archive.attach(tonumber(args[1]), tonumber(args[2]))
  shard.close()
  return 1
end

-- take_ended: the first entries. They are this archiver's until it removes them, or its time has passed.
-- KEYS  shard
-- ARGV  archiver, its time (ms), how many entries at most, about how many bytes
-- Returns {the time of the other archiver that has them (ms)}, or {now (ms), the number of the first entry, how many
--   there are, {entry, log of the job's attempts or '', ...}}
function edges.take_ended(args)
  shard.begin(TAKE)
  if fields.archive_count == 0 then return {NOW, fields.archive_first, 0, {}} end
  local holder = call('GET', KEY.archiver)
  if holder and holder ~= args[1] then return {max(call('PTTL', KEY.archiver), 0)} end
  call('SET', KEY.archiver, args[1], 'PX', args[2])
  local entries, locs, left = {}, {}, tonumber(args[4])
  for i, entry in ipairs(call('LRANGE', KEY.archived_list, 0, tonumber(args[3]) - 1)) do
    if left <= 0 then break end
    local loc, size = archive.parts(entry)
    entries[2 * i - 1], locs[i], left = entry, loc, left - size
  end
  local found = logs.find(locs)
  for i, loc in ipairs(locs) do entries[2 * i] = found[loc] or '' end
  return {NOW, fields.archive_first, fields.archive_count, entries}
end

-- remove_ended: removes entries that are among the first, because they are archived or to be dropped.
-- KEYS  shard
-- ARGV  archiver, the number of the first one or '' to drop whatever is first, how many
-- Returns how many are left
function edges.remove_ended(args)
  shard.begin(archive.FIELDS)
  local was_too_full = archive.is_too_full()
  local first, n = tonumber(args[2]), tonumber(args[3])
  -- Others may have removed some of them.
  local removed = archive.remove_first(first and min(first + n - fields.archive_first, n) or n)
  if not first then shard.set('archive_dropped', fields.archive_dropped + removed) end
  if call('GET', KEY.archiver) == args[1] then call('DEL', KEY.archiver) end
  if was_too_full and not archive.is_too_full() then publish('ready ' .. KEY.tag) end
  shard.close()
  return fields.archive_count
end
