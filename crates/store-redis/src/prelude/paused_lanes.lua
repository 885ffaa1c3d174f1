-- Paused lanes: lanes with ready jobs whose topic or destination is paused, or whose destination has limits. They have no
-- turn.
--
-- A lane is set aside when its turn comes, in `paused`: under `<topic> <lane>` if its topic is paused, else under
-- `!<pause> <lane>` with the name of the pause of its destination, else under `% <lane>` because of a limit: then a reserve
-- that has places for it takes its jobs there. A resume gives the lanes under its name new turns.
-- Lanes that another pause holds are moved to its name, so each step of a resume has fewer lanes before it.
-- Uses destinations, lanes, ready, shard, topics.
do
  -- The holder of a limited lane.
  local LIMITED = '%'
  local function member(holder, lane) return holder .. ' ' .. lane end

  -- Reads the rows of topics and the pauses of destinations that `holder` needs. The lanes' rows must have been read.
  local function load(all)
    local names, fields_of = {}, {}
    for _, lane in ipairs(all) do
      local name = lanes.name(lane)
      if name then
        names[#names + 1] = name
        fields_of[#fields_of + 1] = topics.field(lanes.topic(name))
      end
    end
    if fields.paused > 0 then shard.load_rows(fields_of) end
    destinations.load(names)
  end

  local function is_topic_paused(topic)
    if fields.paused == 0 then return false end
    local _, _, paused = topics.row(topics.field(topic))
    return paused == topics.PAUSED
  end

  -- Returns the name under which a lane is to be set aside: its topic, or `!` and the pause of its destination; nil if
  -- neither is paused. A pause with the name `ended` does not count.
  local function holder(lane, ended)
    local name = lanes.name(lane)
    if not name then return nil end
    local topic = lanes.topic(name)
    if topic ~= ended and is_topic_paused(topic) then return topic end
    local pause = fields.paused_hosts > 0 and destinations.holder(name, ended and string.match(ended, '^!(.*)$'))
    if pause then return '!' .. pause end
    return destinations.is_limited(name) and LIMITED or nil
  end

  -- Returns whether the topic of a lane is paused, and whether its destination is. The row must have been read.
  function paused_lanes.pauses(lane)
    load({lane})
    local name = lanes.name(lane)
    if not name then return false, false end
    return is_topic_paused(lanes.topic(name)), fields.paused_hosts > 0 and destinations.holder(name) ~= nil
  end

  -- Returns the lanes that may deliver, and those that are paused. Their rows must have been read.
  function paused_lanes.split(all)
    if fields.paused + fields.paused_hosts + fields.limits == 0 then return all, NONE end
    local open, held = {}, {}
    load(all)
    for _, lane in ipairs(all) do
      local list = holder(lane) and held or open
      list[#list + 1] = lane
    end
    return open, held
  end

  -- Sets aside paused lanes, which `split` has returned: they lose their turns in the sorted set `turns`.
  function paused_lanes.add(leaving, turns)
    local members = {}
    for _, lane in ipairs(leaving) do members[#members + 1], members[#members + 2] = 0, member(holder(lane), lane) end
    sliced('ZADD', KEY.paused, members)
    sliced('ZREM', turns, leaving)
  end

  -- Gives up to `most` lanes under a name new turns and wakes those who reserve, or moves lanes to the name of another
  -- pause. Returns true if there may be more.
  function paused_lanes.resume(under, most)
    local members = call('ZRANGE', KEY.paused, '[' .. under .. ' ', '(' .. under .. '!', 'BYLEX', 'LIMIT', 0, most)
    local all, pushes, pulls, kept = {}, {}, {}, {}
    for i, name in ipairs(members) do all[i] = sub(name, #under + 2) end
    shard.load_rows(all)
    load(all)
    for i, lane in ipairs(all) do
      local other = holder(lane, under)
      if other then
        kept[#kept + 1], kept[#kept + 2] = 0, member(other, lane)
      else
        local list = lanes.is_pull(lane) and pulls or pushes
        list[#list + 1], list[#list + 2] = NOW_US + i, lane
      end
    end
    sliced('ZADD', KEY.lanes, pushes)
    sliced('ZADD', KEY.pulls, pulls)
    sliced('ZADD', KEY.paused, kept)
    if #pushes + #kept > 0 then ready.wake_notifiers() end
    if #pulls > 0 then ready.wake_consumers(under) end
    sliced('ZREM', KEY.paused, members)
    return #members == most
  end

  -- Whether a lane is set aside, or would be, because of a limit alone. Its row must have been read.
  function paused_lanes.is_limited(lane)
    load({lane})
    return holder(lane) == LIMITED
  end

  -- Whether a lane may give jobs to a caller with places: neither its topic nor its destination is paused.
  function paused_lanes.may_be_admitted(lane)
    load({lane})
    local by = holder(lane)
    return not by or by == LIMITED
  end

  -- Reads at most `most` of the members of lanes that are set aside because of a limit, from a place in their order on.
  local FIRST, BELOW = LIMITED .. ' ', '(' .. LIMITED .. '!'
  local function limited_members(from, most)
    return call('ZRANGE', KEY.paused, from, BELOW, 'BYLEX', 'LIMIT', 0, most)
  end

  -- Returns the lanes of such members that are still limited. Gives those without a limit new turns, and sets those that
  -- are paused aside for the pause.
  local function still_limited(members)
    local all, found, turns, kept, gone = {}, {}, {}, {}, {}
    for i, name in ipairs(members) do all[i] = sub(name, #FIRST + 1) end
    shard.load_rows(all)
    load(all)
    for i, lane in ipairs(all) do
      local other = holder(lane)
      if other == LIMITED then
        found[#found + 1] = lane
      else
        if other then
          kept[#kept + 1], kept[#kept + 2] = 0, member(other, lane)
        elseif rows[lane] then
          turns[#turns + 1], turns[#turns + 2] = NOW_US + i, lane
        end
        gone[#gone + 1] = members[i]
      end
    end
    sliced('ZADD', KEY.lanes, turns)
    sliced('ZADD', KEY.paused, kept)
    sliced('ZREM', KEY.paused, gone)
    if #turns > 0 then ready.wake_notifiers() end
    return found
  end

  -- Returns at most `most` lanes that are set aside because of a limit, from a place that differs from call to call.
  function paused_lanes.limited(most)
    local members = limited_members('[' .. FIRST .. char(NOW_US % 128, floor(NOW_US / 128) % 256), most)
    if #members < most then members = limited_members('[' .. FIRST, most) end
    return still_limited(members)
  end

  -- Gives the next `most` lanes that are set aside because of a limit turns if they have no limit any more. `after` is the
  -- last member of the call before, '' at first. Returns the last member, nil at the end.
  function paused_lanes.sweep(after, most)
    local members = limited_members(after == '' and '[' .. FIRST or '(' .. after, most)
    still_limited(members)
    return #members == most and members[most] or nil
  end

  -- Returns the members of `paused` that a lane may have. Its row must have been read.
  local function members_of(lane, pauses)
    local all = {member(LIMITED, lane), member(lanes.topic(lanes.name(lane)), lane)}
    for _, pause in ipairs(pauses) do all[#all + 1] = member('!' .. pause, lane) end
    return all
  end

  -- Whether a lane is set aside. The rows of the lane and its topic must have been read.
  function paused_lanes.has(lane)
    local name = lanes.name(lane)
    local _, _, paused = topics.row(topics.field(lanes.topic(name)))
    for i, listed in ipairs(members_of(lane, destinations.pauses(name))) do
      if (i ~= 2 or paused > 0) and call('ZSCORE', KEY.paused, listed) then return true end
    end
    return false
  end

  -- Removes an emptied lane from those set aside because of a limit.
  function paused_lanes.forget(lane) call('ZREM', KEY.paused, member(LIMITED, lane)) end

  -- Removes a lane from those set aside. Its row must have been read.
  function paused_lanes.remove(lane)
    call('ZREM', KEY.paused, unpack(members_of(lane, destinations.pauses(lanes.name(lane)))))
  end
end
