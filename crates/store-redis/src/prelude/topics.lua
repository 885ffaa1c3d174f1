-- Topics and tenants: their rows, the lists and the limits of topics and lanes, and the pauses of topics.
--
-- Each known topic has a row in the shard's hash, under `topic:<name>`: the number of its lanes (4 bytes),
-- the hour of its last submit (4 bytes), 1 when it is paused or 2 while it is being resumed, and how many
-- of its jobs were done and cancelled in lanes that were removed (6 bytes each). `topics` lists them by
-- that hour. `index` lists them and their lanes by name: `<name> ` and `<name> <lane>`. A topic without
-- lanes that is not paused stays known until there are too many.
--
-- A tenant has a row under `tenant:~<name>`: how many of its topics have jobs or are paused, and how many of its lanes
-- have jobs (4 bytes each).
--
-- No job of a paused topic is delivered: its lanes are set aside (paused_lanes.lua).
-- Uses lanes, shard.
topics.PAUSED, topics.RESUMING = 1, 2
do
  local TOPIC, TENANT, MOST_KNOWN, A_FEW = '>I4I4BI6I6', '>I4I4', 10000, 16
  -- Limits of topics and lanes with jobs. A paused topic without jobs counts as one with jobs.
  local MOST_TOPICS, MOST_LANES = 10000, 100000
  -- Answers of `refuse` in this call by lane, and the lanes and topics that it has let in, in all and by tenant.
  local judged, new_lanes, new_topics, n_new_topics, new_of
  -- Whether this call has added lanes.
  local has_added

  function topics.start() judged, new_lanes, new_topics, n_new_topics, new_of, has_added = nil, 0, nil, 0, nil, false end

  local function hour() return floor(NOW / 3600000) end
  function topics.field(topic) return 'topic:' .. topic end

  -- Returns the field of the topic of a lane with this name. Few names are remembered, because callers make them up.
  local fields_of_names, n_names = {}, 0
  function topics.field_of(name)
    local field = fields_of_names[name]
    if not field then
      if n_names == 1000 then fields_of_names, n_names = {}, 0 end
      field, n_names = topics.field(lanes.topic(name)), n_names + 1
      fields_of_names[name] = field
    end
    return field
  end
  local function member(lane) return lanes.topic(lanes.name(lane)) .. ' ' .. lane end

  -- Returns the number of a topic's lanes, the hour of its last submit, whether it is paused, and how many jobs were done
  -- and cancelled in removed lanes; zeros if there is no row. The row must have been read.
  function topics.row(field)
    local row = rows[field]
    if not row then return 0, 0, 0, 0, 0 end
    return read(TOPIC, row)
  end

  local function put_row(field, n, at, paused, more_done, more_cancelled)
    local _, _, _, done, cancelled = topics.row(field)
    rows[field] = pack(TOPIC, n, at, paused, done + (more_done or 0), cancelled + (more_cancelled or 0))
    shard.put(field, rows[field])
  end

  -- Returns the topic if an entry of the shard's hash is its row, else nil.
  function topics.of_entry(name, row) return #row == 21 and string.match(name, '^topic:(.+)$') or nil end

  -- Returns the name of the row of a topic's tenant; nil if the topic has none.
  local function tenant_field(topic)
    if byte(topic) == 126 then return 'tenant:' .. lanes.tenant(topic) end
  end

  -- Returns how many topics and lanes the tenant with this row uses.
  local function used_by(field)
    shard.load_rows({field})
    if not rows[field] then return 0, 0 end
    return read(TENANT, rows[field])
  end

  -- Adds to the numbers of topics and lanes in the row of a topic's tenant, if the topic has one.
  local function count_of_tenant(topic, more_topics, more_lanes)
    local field = tenant_field(topic)
    if not field then return end
    local n_topics, n_lanes = used_by(field)
    rows[field] = pack(TENANT, max(0, n_topics + more_topics), max(0, n_lanes + more_lanes))
    shard.put(field, rows[field])
  end

  -- Returns how many lanes a tenant, given as `~name`, has; nil if `group` has no such row.
  function topics.n_lanes_of(group)
    local field = 'tenant:' .. group
    shard.load_rows({field})
    if not rows[field] then return nil end
    local _, n = read(TENANT, rows[field])
    return n
  end

  -- Whether a tenant that has `own` of all `used` topics, lanes or pauses may not have one more: it may have as many as
  -- its quota allows, but at most half of what the others leave of `most`.
  function topics.is_beyond(own, quota, used, most) return own >= min(quota, floor((most - used + own) / 2)) end

  -- Returns which limit a new lane of a topic's tenant would exceed, 'topics' or 'lanes'; nil if there is room. Then the
  -- lane, and the topic if it is new, count as used in this call.
  local function tenant_limit(topic, is_new, limits)
    local field = tenant_field(topic)
    if not field then return nil end
    new_of = new_of or {}
    local new = new_of[field] or {0, 0}
    if limits ~= '' then
      local topics_quota, lanes_quota = read(TENANT, limits)
      local own_topics, own_lanes = used_by(field)
      own_topics, own_lanes = own_topics + new[1], own_lanes + new[2]
      if is_new and topics.is_beyond(own_topics, topics_quota, fields.topics + n_new_topics, MOST_TOPICS) then return 'topics' end
      if topics.is_beyond(own_lanes, lanes_quota, fields.lanes + new_lanes, MOST_LANES) then return 'lanes' end
    end
    new_of[field] = {new[1] + (is_new and 1 or 0), new[2] + 1}
    return nil
  end

  -- Returns which limit pausing a topic without jobs would exceed: 0 that of all topics, 2 that of its tenant; nil if
  -- there is room.
  function topics.pause_limit(topic, limits)
    if topics.are_full() then return 0 end
    local field = limits ~= '' and tenant_field(topic)
    if not field then return nil end
    local own = used_by(field)
    if topics.is_beyond(own, read(TENANT, limits), fields.topics, MOST_TOPICS) then return 2 end
  end

  function topics.set_tenant(tenant, row) shard.put('tenant:' .. tenant, row) end

  -- Returns the tenant, as `~name`, if an entry of the shard's hash is its row, else nil.
  function topics.tenant_of_entry(name, row) return #row == 8 and string.match(name, '^tenant:(~.+)$') or nil end

  -- If topics are too many, examines the oldest: removes those without lanes, moves used and paused ones to the end.
  local function trim()
    local left = call('ZCARD', KEY.topics) - MOST_KNOWN
    if left <= 0 then return end
    local oldest, names, gone, kept = call('ZRANGE', KEY.topics, 0, A_FEW - 1), {}, {}, {}
    for i, topic in ipairs(oldest) do names[i] = topics.field(topic) end
    shard.load_rows(names)
    for i, topic in ipairs(oldest) do
      local n, _, paused = topics.row(names[i])
      if n > 0 or paused > 0 then
        kept[#kept + 1], kept[#kept + 2] = hour(), topic
      elseif #gone < left then
        gone[#gone + 1] = topic
      end
    end
    sliced('ZADD', KEY.topics, kept)
    sliced('ZREM', KEY.topics, gone)
    local members = {}
    for i, topic in ipairs(gone) do members[i], gone[i] = topic .. ' ', topics.field(topic) end
    sliced('ZREM', KEY.index, members)
    sliced('HDEL', KEY.shard, gone)
  end

  -- Lists topics by the hour of their submits (hour, topic, …). For new topics, collects their members of `index` in
  -- `members`, and removes old topics if there are too many.
  local function list_by_hour(noted, members)
    if #noted == 0 then return end
    if sliced('ZADD', KEY.topics, noted) > 0 then
      for i = 2, #noted, 2 do
        members[#members + 1], members[#members + 2] = 0, noted[i] .. ' '
      end
      trim()
    end
  end

  -- Whether the shard has half of the topics or lanes that it may have; also whether this call has added some.
  function topics.are_crowded() return fields.topics >= MOST_TOPICS / 2 or fields.lanes >= MOST_LANES / 2 end
  function topics.are_new_crowded() return has_added and topics.are_crowded() end

  -- Whether one more topic would be too many.
  function topics.are_full() return fields.topics + n_new_topics >= MOST_TOPICS end

  -- Returns the answer to a new job whose lane or topic would be one too many, in all or for its tenant with these
  -- limits, or whose lane has the id of another one. False if there is room: then the lane and the topic count as used
  -- in this call.
  function topics.refuse(lane, name, limits)
    local row = rows[lane]
    if row and sub(row, 29) == name then return false end
    judged, new_topics = judged or {}, new_topics or {}
    if judged[lane] ~= nil then return judged[lane] end
    local topic = lanes.topic(name)
    local field, answer = topics.field(topic), false
    shard.load_rows({lane, field})
    if not rows[lane] then
      local n, _, paused = topics.row(field)
      local is_new = n == 0 and paused == 0 and not new_topics[field]
      if is_new and topics.are_full() then
        answer = {422, 'topics'}
      elseif fields.lanes + new_lanes >= MOST_LANES then
        answer = {422, 'lanes'}
      else
        local limit = tenant_limit(topic, is_new, limits)
        if limit then
          answer = {429, limit}
        else
          new_lanes = new_lanes + 1
          if is_new then new_topics[field], n_new_topics = true, n_new_topics + 1 end
        end
      end
    elseif lanes.name(lane) ~= name then
      answer = {421}
    end
    judged[lane] = answer
    return answer
  end

  function topics.is_row_of_this_hour(row) return read('>I4', row, 5) == hour() end

  -- Whether a topic has a row, by its field, and of this hour. The row must have been read.
  function topics.is_of_this_hour(field)
    local row = rows[field]
    return row and topics.is_row_of_this_hour(row)
  end

  -- Adds rows for lanes to which jobs are submitted, given as names by id, and updates those of their topics. Returns a
  -- function that writes the lists and the new lanes' rows; the other rows are written by `shard.close`.
  function topics.add_lanes(arriving)
    local names, noted, members, named = {}, {}, {}, {}
    for lane, name in pairs(arriving) do
      names[#names + 1], names[#names + 2] = lane, topics.field(lanes.topic(name))
    end
    shard.load_rows(names)
    for lane, name in pairs(arriving) do
      local topic, is_new = lanes.topic(name), not rows[lane]
      local field = topics.field(topic)
      local n, at, paused = topics.row(field)
      if is_new then
        rows[lane] = NO_COUNTS .. name
        named[#named + 1], named[#named + 2] = lane, rows[lane]
        members[#members + 1], members[#members + 2] = 0, topic .. ' ' .. lane
        local is_new_topic = n == 0 and paused == 0
        shard.count('lanes', 1)
        has_added = true
        if is_new_topic then shard.count('topics', 1) end
        count_of_tenant(topic, is_new_topic and 1 or 0, 1)
      end
      if at ~= hour() then noted[#noted + 1], noted[#noted + 2] = hour(), topic end
      if is_new or at ~= hour() then put_row(field, is_new and n + 1 or n, hour(), paused) end
    end
    return function()
      list_by_hour(noted, members)
      sliced('ZADD', KEY.index, members)
      -- The name of a lane is stored nowhere else, so it is written before the jobs that need it.
      sliced('HSET', KEY.shard, named)
    end
  end

  -- Removes the rows of lanes, which must have been read, and their members of `index`. Adds the counts of ended jobs to
  -- the rows of their topics, and subtracts `fewer`, 0 or 1, from the number of lanes for each lane.
  function topics.drop_rows(leaving, fewer)
    local names, members = {}, {}
    for i, lane in ipairs(leaving) do
      names[i], members[i] = topics.field(lanes.topic(lanes.name(lane))), member(lane)
    end
    shard.load_rows(names)
    -- This comes first, so that nothing was counted yet if it fails.
    sliced('ZREM', KEY.index, members)
    for i, field in ipairs(names) do
      local n, at, paused = topics.row(field)
      local _, _, _, _, done, cancelled = read(COUNTS, rows[leaving[i]])
      if rows[field] then put_row(field, max(0, n - fewer), at, paused, done, cancelled) end
      if fewer > 0 then
        local is_last = n == fewer and paused == 0
        if is_last then shard.count('topics', -1) end
        count_of_tenant(sub(field, 7), is_last and -1 or 0, -fewer)
      end
    end
    sliced('HDEL', KEY.shard, leaving)
  end

  -- Removes lanes that have no job left.
  function topics.remove_lanes(leaving)
    topics.drop_rows(leaving, 1)
    shard.count('lanes', -#leaving)
  end

  local function learn(topic)
    local members = {}
    list_by_hour({hour(), topic}, members)
    sliced('ZADD', KEY.index, members)
  end

  -- Corrects the number of a topic's lanes, and makes the topic known. The row must have been read.
  function topics.set_lanes(topic, n)
    local field = topics.field(topic)
    local is_new, _, at, paused = not rows[field], topics.row(field)
    put_row(field, n, is_new and hour() or at, paused)
    if is_new then learn(topic) end
  end

  -- Returns the name under which the lists lack a topic's or lane's row; false if they have it.
  function topics.unlisted(name)
    local topic = topics.of_entry(name, rows[name])
    if topic then
      return not (call('ZSCORE', KEY.index, topic .. ' ') and call('ZSCORE', KEY.topics, topic)) and topic .. ' '
    end
    return not call('ZSCORE', KEY.index, member(name)) and member(name)
  end

  -- Lists a row again by the name that `unlisted` has returned.
  function topics.list(name)
    local topic = lanes.topic(name)
    call('ZADD', KEY.index, 0, name)
    if #name == #topic + 1 then
      local _, at = topics.row(topics.field(topic))
      call('ZADD', KEY.topics, 'NX', at, topic)
    end
  end

  -- Sets whether a topic is paused, and makes the topic known. Its row must have been read.
  function topics.set_paused(topic, paused)
    local field = topics.field(topic)
    local is_new, n, at, before = not rows[field], topics.row(field)
    put_row(field, n, is_new and hour() or at, paused)
    if is_new then learn(topic) end
    shard.count('pauses', 1)
    local change = (paused > 0 and 1 or 0) - (before > 0 and 1 or 0)
    shard.count('paused', change)
    if n == 0 then
      shard.count('topics', change)
      count_of_tenant(topic, change, 0)
    end
  end
end
