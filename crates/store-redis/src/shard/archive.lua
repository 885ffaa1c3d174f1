-- The archive outbox: attaches an archive, reads the first entries for an archiver, removes them, and reads the totals.
-- Uses archive, attempt_logs, shard.
-- For how many entries logs are read at a time.
local STEP = 50

-- attach_archive: says which ends get an entry, or with 0 that none do.
-- KEYS  shard
-- ARGV  the field `archive` without its bits of fullness, how many bytes the entries may take
-- Returns 1
function scripts.attach_archive(args)
  shard.begin()
  archive.attach(tonumber(args[1]), tonumber(args[2]))
  shard.close()
  return 1
end

-- take_ended: the first entries. They are this archiver's until it removes them, or its time has passed.
-- KEYS  shard
-- ARGV  archiver, its time (ms), how many entries at most, about how many bytes, with the logs of attempts
-- Returns {the time of the other archiver that has them (ms)}, or {now (ms), the number of the first entry,
--   {entry, log of the job's attempts or '', ...}}
function scripts.take_ended(args)
  shard.begin()
  if archive.is_empty() then
    shard.close()
    return {NOW, fields.archive_first, {}}
  end
  local holder = call('GET', KEY.archiver)
  if holder and holder ~= args[1] then return {max(call('PTTL', KEY.archiver), 0)} end
  call('SET', KEY.archiver, args[1], 'PX', args[2])
  local taken, left, most, at = {}, tonumber(args[4]), tonumber(args[3]), 0
  while left > 0 and at < most do
    local entries, locs = call('LRANGE', KEY.archived_list, at, min(at + STEP, most) - 1), {}
    if #entries == 0 then break end
    for i, entry in ipairs(entries) do locs[i] = sub(entry, 8, 19) end
    local found = attempt_logs.find(locs)
    for i, entry in ipairs(entries) do
      if left <= 0 then break end
      local log = found[locs[i]] or ''
      taken[#taken + 1], taken[#taken + 2] = entry, log
      local _, weight = archive.size(entry)
      left = left - weight - #log
    end
    at = at + #entries
  end
  return {NOW, fields.archive_first, taken}
end

-- remove_ended: removes the first entries, if the last of them has the head given; without a number drops whatever is
--   first, and counts it. Ends the claim of this archiver.
-- KEYS  shard
-- ARGV  archiver, the number of the first one or '' to drop whatever is first, how many, the head of the last one
-- Returns how many are left
function scripts.remove_ended(args)
  shard.begin()
  local first, n = tonumber(args[2]), tonumber(args[3])
  if not first then
    shard.set('archive_dropped', fields.archive_dropped + archive.remove_first(n))
  elseif first <= fields.archive_first then
    -- Another archiver may have removed some of the entries.
    n = first + n - fields.archive_first
    local last = n > 0 and call('LINDEX', KEY.archived_list, n - 1)
    -- After a failover other entries may have these numbers.
    if last and archive.head(last) == args[4] then archive.remove_first(n) end
  end
  if call('GET', KEY.archiver) == args[1] then call('DEL', KEY.archiver) end
  shard.close()
  return archive.count()
end

-- archive_status: the archive outbox.
-- KEYS  shard
-- ARGV  none
-- Returns {the field `archive`, how many entries there are, bytes, bound, dropped, when the first job ended (ms) or 0}
function scripts.archive_status()
  shard.begin()
  return {
    fields.archive, archive.count(), fields.archive_bytes, fields.archive_bound, fields.archive_dropped, archive.oldest(),
  }
end
