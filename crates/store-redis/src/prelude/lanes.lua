-- Lanes: their names and the counts of their jobs. A lane is a topic with an origin, or a topic alone for pull jobs. A
-- lane's id is 8 bytes; its first bit marks a pull lane. Its name is the topic, a space and the origin.
--
-- A lane with jobs has a row in the shard's hash, under its id: how many jobs are delayed, ready,
-- reserved and dead (4 bytes each), how many were done and cancelled (6 bytes each), and the name.
--
-- Often a lane gets its next job soon after its last one has ended. Therefore the last 128 lanes to lose their last job
-- keep their rows. The row `resting` lists their ids, and those of some that have jobs again. A tenant's lanes do not
-- rest, since their number has a limit. None rests in a shard with half of the lanes or topics that it may have.
-- Uses shard, topics.
lanes.NO_TENANT = '~'
local COUNTS, NO_COUNTS = '>i4i4i4i4I6I6', string.rep('\0', 28)
do
  local STATE_NAMES = {'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled'}
  -- Changes of counts by lane and state, and lanes that are being removed.
  local moved, leaving

  function lanes.begin() moved, leaving = {}, nil end
  function lanes.moved() return moved end

  function lanes.is_pull(lane) return byte(lane) >= 128 end
  -- Returns the lane's name, or nil if its row is missing. The row must have been read.
  function lanes.name(lane)
    local row = rows[lane]
    if row then return sub(row, 29) end
  end
  function lanes.topic(name) return string.match(name, '^[^ ]*') end

  -- Returns the origin in a name; '' for a pull lane.
  function lanes.origin(name) return sub(name, string.find(name, ' ', 1, true) + 1) end

  -- Returns the host and the port of the origin in a name; nil for a pull lane.
  function lanes.destination(name)
    local scheme, authority = string.match(lanes.origin(name), '^(https?)://(.+)$')
    if not scheme then return nil end
    local host, port = string.match(authority, '^(.-):(%d+)$')
    return host or authority, port or (scheme == 'https' and '443' or '80')
  end

  -- Returns the tenant in a name, as `~tenant`; NO_TENANT if the topic has none. No origin begins with `~`.
  function lanes.tenant(name) return string.match(name, '^~[^/ ]*') or lanes.NO_TENANT end

  -- Counts n jobs of a lane that go from one state to another, for the lane and the ledger. `from` is nil for new jobs,
  -- `to` for removed ones. `save` writes the counts.
  function lanes.move(lane, from, to, n)
    local counts = moved[lane]
    if not counts then
      counts = {0, 0, 0, 0, 0, 0}
      moved[lane] = counts
    end
    if from then
      shard.count(STATE_NAMES[from], -n)
      counts[from] = counts[from] - n
    end
    if to then
      shard.count(STATE_NAMES[to], n)
      counts[to] = counts[to] + n
    end
  end

  -- Returns a lane's row with more jobs in these states.
  function lanes.counted(row, delayed, ready, reserved)
    local d, r, v = read('>i4i4i4', row)
    return pack('>i4i4i4', d + delayed, r + ready, v + reserved) .. sub(row, 13)
  end

  -- Returns a lane's row after n reserved jobs are done.
  function lanes.with_done(row, n)
    local reserved, dead, done = read('>i4i4I6', row, 9)
    return sub(row, 1, 8) .. pack('>i4i4I6', reserved - n, dead, done + n) .. sub(row, 23)
  end

  -- Whether a lane with this row has no jobs left once n have ended.
  function lanes.ends_with(row, n)
    local delayed, waiting, reserved, dead = read('>i4i4i4i4', row)
    return delayed + waiting + reserved + dead <= n
  end

  local ID, MOST_RESTING = 8, 128
  local function is_in(list, lane)
    local at = 1
    repeat
      at = string.find(list, lane, at, true)
      if at and at % ID == 1 then return true end
      at = at and at + 1
    until not at
    return false
  end

  -- Whether a lane keeps its row with its last job. False for one that is not yet in the list.
  function lanes.is_resting(lane) return is_in(call('HGET', KEY.shard, 'resting') or '', lane) end

  -- Lets lanes rest that have lost their last job, given as a set. Returns a set of the lanes to be removed: those that may
  -- not rest, and those that have rested longest if there are too many; all if the shard is crowded.
  local function rest(emptied)
    shard.load_rows({'resting'})
    local before, gone, most = rows.resting or '', {}, topics.are_crowded() and 0 or MOST_RESTING
    local list = before
    for lane in pairs(emptied) do
      if lanes.tenant(lanes.name(lane)) ~= lanes.NO_TENANT then
        gone[lane] = true
      elseif not is_in(list, lane) then
        list = list .. lane
      end
    end
    while #list > ID * most do
      local lane = sub(list, 1, ID)
      list = sub(list, ID + 1)
      shard.load_rows({lane})
      local may_go = not moved[lane] or emptied[lane]
      if may_go and rows[lane] and lanes.ends_with(rows[lane], 0) then gone[lane] = true end
    end
    if list ~= before then
      rows.resting = list
      shard.put('resting', list)
    end
    return gone
  end

  -- Returns how many jobs of a lane are ready, the changes of this call included.
  function lanes.ready(lane)
    shard.load_rows({lane})
    local n = moved[lane] and moved[lane][READY] or 0
    if rows[lane] then
      local _, stored = read(COUNTS, rows[lane])
      n = n + stored
    end
    return max(0, n)
  end

  -- Sets the rows of lanes whose counts have changed, for `shard.close` to write; a lane without jobs rests or is removed.
  -- If jobs only move within a lane its row stays, even if no job is left by its counts: they may be wrong, and calls
  -- that end no job have not read the fields that removing a lane changes.
  function lanes.save()
    -- The removal of these lanes has failed, so they stay.
    if leaving then
      for _, lane in ipairs(leaving) do shard.put(lane, rows[lane]) end
      leaving = nil
    end
    if next(moved) == nil then return end
    local absent, emptied
    for lane in pairs(moved) do
      if rows[lane] == nil then
        absent = absent or {}
        absent[#absent + 1] = lane
      end
    end
    if absent then shard.load_rows(absent) end
    for lane, more in pairs(moved) do
      local row = rows[lane]
      if row then
        local delayed, ready, reserved, dead, done, cancelled = read(COUNTS, row)
        delayed, ready = delayed + more[DELAYED], ready + more[READY]
        reserved, dead = reserved + more[RESERVED], dead + more[DEAD]
        local changed = pack(COUNTS, delayed, ready, reserved, dead, done + more[DONE], cancelled + more[CANCELLED])
          .. sub(row, 29)
        rows[lane] = changed
        local own = more[DELAYED] + more[READY] + more[RESERVED] + more[DEAD]
        if own < 0 and delayed + ready + reserved + dead <= 0 then
          emptied = emptied or {}
          emptied[lane] = true
        elseif changed ~= row then
          shard.put(lane, changed)
        end
      end
    end
    local gone = (emptied or topics.are_new_crowded()) and rest(emptied or NONE) or NONE
    moved = {}
    for lane in pairs(emptied or NONE) do
      if not gone[lane] then shard.put(lane, rows[lane]) end
    end
    if next(gone) then
      leaving = {}
      for lane in pairs(gone) do leaving[#leaving + 1] = lane end
      topics.remove_lanes(leaving)
      leaving = nil
    end
  end
end
