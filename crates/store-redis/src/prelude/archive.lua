-- The archive outbox: ended jobs that wait to be written to an archive database, in the order in which they ended. It is
-- a list of entries, which are numbered without gaps. The fields are the number of the first entry, how many bytes the
-- entries take, how many they may take, and how many entries were dropped.
--
-- The field `archive` is 0 without an archive. Else it has a bit for each kind of end that gets an entry, from DONE on,
-- and the bits below. All transitions read this field; without an archive they do nothing more here.
--
-- An entry begins with its head: the kind of the end (1), with HAS_BODY added if the body is kept; the time of the end
-- (6); and the locator (12). Then come the lane's name and the job state, each behind its length (2), and the record.
-- Without the body the record ends before it. A large payload that is kept has a key of its own, with the head of the
-- entry.
-- Uses lanes, ready, records, shard.
archive.DONE, archive.DEAD, archive.EXPIRED, archive.CANCELLED, archive.PURGED = 1, 2, 3, 4, 5
do
  local WITH_BODIES, DROPS, ATTACHED, FULL, TOO_FULL = 32, 64, 128, 256, 512
  local BIT_OF = {1, 2, 4, 8, 16}
  local HAS_BODY = 128
  -- The bytes of a head.
  local HEAD = 19
  -- How many entries are removed at a time, and how many topics of waiting consumers are woken.
  local AT_ONCE = 100
  -- The setting as it is and as it was read; the ends of jobs that `save` has not written yet: kind, locator, lane and
  -- job state, nil for none; the new keys of payloads by the old ones, and the old ones by the new ones.
  local setting, before, noted, new_keys, old_keys

  local function has(flag) return bit.band(setting, flag) ~= 0 end

  function archive.begin(value) setting, before, noted, new_keys, old_keys = value, value end

  function archive.is_attached() return has(ATTACHED) end
  -- Whether submits are refused, and whether reserves are refused.
  function archive.is_full() return has(FULL) end
  function archive.is_too_full() return has(TOO_FULL) end
  -- Returns the key to which a payload's key is renamed when its job is removed; nil if the payload is removed too.
  function archive.new_key(key) return new_keys and new_keys[key] end
  function archive.head(entry) return sub(entry, 1, HEAD) end
  -- Returns how many entries the outbox has.
  function archive.count() return call('LLEN', KEY.archived_list) end
  -- Returns when the job of the first entry ended (ms); 0 if there is no entry or it is too short.
  function archive.oldest()
    local first = call('LINDEX', KEY.archived_list, 0)
    return first and #first >= HEAD and read('>I6', first, 2) or 0
  end

  -- Records that a job ends with the state `s`, if such ends get an entry. `save` must follow before the job's removal.
  function archive.note(kind, loc, lane, s)
    if setting > 0 and has(BIT_OF[kind]) then
      noted = noted or {}
      noted[#noted + 1] = {kind, loc, lane, s or ''}
    end
  end
  -- Records that a job dies, as `note` does, as expired or dead by the reason in its state `s`.
  function archive.note_death(loc, lane, s)
    if setting > 0 then archive.note(state.reason(s) == 'expired' and archive.EXPIRED or archive.DEAD, loc, lane, s) end
  end

  -- Wakes notifiers and waiting consumers, because reserves are allowed again.
  local function wake()
    publish('ready ' .. KEY.tag)
    local waiting = call('ZRANGE', KEY.pulls, 0, AT_ONCE - 1)
    shard.load_rows(waiting)
    for _, lane in ipairs(waiting) do
      local name = lanes.name(lane)
      if name then ready.wake_consumers(lanes.topic(name)) end
    end
  end

  -- Sets the bits that say how full the outbox is. Wakes notifiers and consumers if reserves are no longer refused.
  local function set_fullness()
    local flags, bytes, bound = setting % FULL, fields.archive_bytes, fields.archive_bound
    if has(ATTACHED) and not has(DROPS) then
      if bytes >= bound then flags = flags + FULL end
      if bytes >= 2 * bound then flags = flags + TOO_FULL end
    end
    if flags ~= setting then
      shard.set('archive', flags)
      setting = flags
    end
    if before >= TOO_FULL and not has(TOO_FULL) then
      before = setting
      wake()
    end
  end

  -- Attaches an archive with a setting, without the bits of fullness, and a bound in bytes. The setting 0 detaches it.
  function archive.attach(value, bound)
    setting = value
    shard.set('archive', value)
    shard.set('archive_bound', bound)
    set_fullness()
  end

  -- Whether the outbox has no entries. If so, sets the count of bytes, which a transition that failed half-way may have
  -- left, to 0.
  function archive.is_empty()
    if archive.count() > 0 then return false end
    if fields.archive_bytes > 0 then shard.set('archive_bytes', 0) end
    set_fullness()
    return true
  end

  -- Returns the entry of an end, the bytes that it takes as it is stored, and the key for its payload if that has one of
  -- its own.
  local function entry_of(noted_end, raw)
    local kind, loc, lane, s = unpack(noted_end)
    local rest, size, has_key = raw, #raw, false
    if not has(WITH_BODIES) then
      rest = record.head(raw) .. payload_start(loc, raw)
      size = #rest
    elseif not record.is_external(raw) then
      kind = kind + HAS_BODY
    elseif call('EXISTS', KEY.body .. loc) == 1 then
      kind, size, has_key = kind + HAS_BODY, record.size(raw), true
    else
      -- The payload is missing.
      rest = record.head(raw)
      size = #rest
    end
    -- Without the lane's name the entry cannot be read, but the numbers stay without gaps.
    local name = lanes.name(lane) or ''
    local head = char(kind) .. six(NOW) .. loc
    local before = concat({head, pack('>I2', #name), name, pack('>I2', #s), s})
    return before .. rest, #before + size, has_key and KEY.archived .. head
  end

  -- Returns the bytes that an entry takes as it is stored, those that its reader needs, and the key of its payload if
  -- that has one of its own. A damaged entry takes its own length.
  function archive.size(entry)
    local size, at = #entry, HEAD + 1
    for _ = 1, 2 do
      if at + 1 > size then return size, size end
      at = at + 2 + read('>I2', entry, at)
    end
    local raw = byte(entry) >= HAS_BODY and record.whole(sub(entry, at))
    if not raw or #raw < RECORD + 8 then return size, size end
    local key = record.is_external(raw) and KEY.archived .. archive.head(entry)
    return size + record.size(raw) - #raw, size + record.weight(raw) - #raw, key
  end

  -- Removes the first `n` entries with their payloads, or all if there are fewer. Returns how many were removed.
  function archive.remove_first(n)
    local removed = 0
    while removed < n do
      local entries = call('LPOP', KEY.archived_list, min(n - removed, AT_ONCE))
      if not entries then break end
      local keys, bytes = {}, 0
      for _, entry in ipairs(entries) do
        local size, _, key = archive.size(entry)
        bytes = bytes + size
        -- The payload of a job that ends in this call is not renamed yet: it is removed with the job.
        local old = key and old_keys and old_keys[key]
        if old then new_keys[old] = nil elseif key then keys[#keys + 1] = key end
      end
      if #keys > 0 then call('UNLINK', unpack(keys)) end
      removed = removed + #entries
      shard.set('archive_first', fields.archive_first + #entries)
      shard.set('archive_bytes', max(fields.archive_bytes - bytes, 0))
    end
    if not archive.is_empty() then set_fullness() end
    return removed
  end

  -- Drops and counts oldest entries beyond the bound, if the setting allows. `added` is how many this call added.
  local function drop(added)
    local dropped = 0
    -- After the bound was lowered there may be many; then later calls drop more.
    for _ = 1, AT_ONCE + added do
      if not has(DROPS) or fields.archive_bytes <= fields.archive_bound then break end
      dropped = dropped + archive.remove_first(1)
    end
    if dropped > 0 then shard.set('archive_dropped', fields.archive_dropped + dropped) end
  end

  -- Writes the entries of the recorded ends, and drops others if necessary. Must run before the records are removed.
  function archive.save()
    if not noted then return end
    new_keys, old_keys = new_keys or {}, old_keys or {}
    local locs, names = {}, {}
    for i, one in ipairs(noted) do locs[i], names[i] = one[2], one[3] end
    shard.load_rows(names)
    local entries, bytes, copies = {}, 0, {}
    for i, raw in ipairs(fetch(KEY.pool, locs)) do
      raw = record.whole(raw)
      if raw then
        local entry, size, key = entry_of(noted[i], raw)
        entries[#entries + 1], bytes = entry, bytes + size
        local kind, old = noted[i][1], KEY.body .. locs[i]
        if key and (kind == archive.DEAD or kind == archive.EXPIRED) then
          copies[#copies + 1] = {old, key}
        elseif key then
          new_keys[old], old_keys[key] = key, old
        end
      end
    end
    noted = nil
    sliced('RPUSH', KEY.archived_list, entries)
    for _, copy in ipairs(copies) do call('COPY', copy[1], copy[2], 'REPLACE') end
    shard.set('archive_bytes', fields.archive_bytes + bytes)
    set_fullness()
    drop(#entries)
  end
end
