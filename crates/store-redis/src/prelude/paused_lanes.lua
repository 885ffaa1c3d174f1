-- Paused lanes: lanes with ready jobs whose topic or destination is paused. They have no turn.
--
-- A lane is set aside when its turn comes, in `paused`: under `<topic> <lane>` if its topic is paused, else under
-- `!<pause> <lane>` with the name of the pause of its destination. A resume gives the lanes under its name new turns.
-- Lanes that another pause holds are moved to its name, so each step of a resume has fewer lanes before it.
-- Uses destinations, lanes, ready, shard, topics.
do
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
    if fields.paused_hosts > 0 then destinations.load(names) end
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
    return pause and '!' .. pause or nil
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
    if fields.paused == 0 and fields.paused_hosts == 0 then return all, NONE end
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
    if #pushes > 0 then publish('ready ' .. KEY.tag) end
    if #pulls > 0 then ready.wake_consumers(under) end
    sliced('ZREM', KEY.paused, members)
    return #members == most
  end

  -- Returns the members of `paused` that a lane may have. Its row must have been read.
  local function members_of(lane, pauses)
    local all = {member(lanes.topic(lanes.name(lane)), lane)}
    for _, pause in ipairs(pauses) do all[#all + 1] = member('!' .. pause, lane) end
    return all
  end

  -- Whether a lane is set aside. The rows of the lane and its topic must have been read.
  function paused_lanes.has(lane)
    local name = lanes.name(lane)
    local _, _, paused = topics.row(topics.field(lanes.topic(name)))
    for i, listed in ipairs(members_of(lane, destinations.pauses(name))) do
      if (i > 1 or paused > 0) and call('ZSCORE', KEY.paused, listed) then return true end
    end
    return false
  end

  -- Removes a lane from those set aside. Its row must have been read.
  function paused_lanes.remove(lane)
    call('ZREM', KEY.paused, unpack(members_of(lane, destinations.pauses(lanes.name(lane)))))
  end
end
