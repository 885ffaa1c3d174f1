-- Topics. Each known one has a row in `shard`, under `topic:<name>`: how many lanes it has (4
-- bytes), the hour of its last submit (4 bytes), whether it is paused: 0, or 1, or 2 while it is
-- being resumed, and how many of its jobs were done and cancelled in lanes that were forgotten (6 bytes
-- each). `topics` has them by that hour. `index` has them by name, and behind each its lanes:
-- `<name> ` and `<name> <lane>`. One without lanes that is not paused stays known until there are too
-- many.
--
-- Nothing of a paused topic is handed over. Its lanes that are met by who hands over go to `parked`,
-- under the names that they have in `index`, until it is resumed.
local PAUSED, RESUMING = 1, 2
local hour
do
  local TOPIC, MOST_KNOWN, A_FEW = '>I4I4BI6I6', 10000, 16
  -- So many may have jobs. What is paused without jobs counts as a topic that has some.
  local MOST_TOPICS, MOST_LANES = 10000, 100000
  -- What was judged in this call: answers by lane, and how much of it is new.
  local judged, fresh_lanes, fresh_topics, n_fresh

  function topics.start() judged, fresh_lanes, fresh_topics, n_fresh = {}, 0, {}, 0 end

  function hour() return floor(NOW / 3600000) end
  function topics.field(topic) return 'topic:' .. topic end
  local function member(lane) return topic_in(lane_words(lane)) .. ' ' .. lane end

  -- How many lanes a topic has, the hour of its last submit, whether it is paused, and how many were
  -- done and cancelled. Its row must have been read.
  function topics.row(field)
    local row = rows[field]
    if not row then return 0, 0, 0, 0, 0 end
    return read(TOPIC, row)
  end

  local function put_row(field, lanes, at, paused, more_done, more_cancelled)
    local _, _, _, done, cancelled = topics.row(field)
    rows[field] = pack(TOPIC, lanes, at, paused, done + (more_done or 0), cancelled + (more_cancelled or 0))
    set(field, rows[field])
  end

  -- A row that is one of a topic.
  function topics.is_row(row) return #row == 21 end

  -- When there are too many, the longest known ones that have no lanes are forgotten. Those that
  -- have some, or are paused, go behind the others.
  local function trim()
    local left = call('ZCARD', KEY.topics) - MOST_KNOWN
    if left <= 0 then return end
    local oldest, fields, gone, kept = call('ZRANGE', KEY.topics, 0, A_FEW - 1), {}, {}, {}
    for i, topic in ipairs(oldest) do fields[i] = topics.field(topic) end
    rows_load(fields)
    for i, topic in ipairs(oldest) do
      local lanes, _, paused = topics.row(fields[i])
      if lanes > 0 or paused > 0 then
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

  -- What is told of a topic once an hour.
  local function note(noted, members)
    if #noted == 0 then return end
    if sliced('ZADD', KEY.topics, noted) > 0 then
      for i = 2, #noted, 2 do
        members[#members + 1], members[#members + 2] = 0, noted[i] .. ' '
      end
      trim()
    end
  end

  -- Whether there is no room for one more topic.
  function topics.are_full() return shard.topics + n_fresh >= MOST_TOPICS end

  -- The answer to a new job where its lane, or the topic of that, would be one too many; else false,
  -- and there is room for the lane. `lanes` and `topics` of the shard must have been read.
  function topics.refuse(lane, words)
    if judged[lane] ~= nil then return judged[lane] end
    local field, answer = topics.field(topic_in(words)), false
    rows_load({lane, field})
    if not rows[lane] then
      local n, _, paused = topics.row(field)
      local is_new = n == 0 and paused == 0 and not fresh_topics[field]
      if is_new and topics.are_full() then
        answer = {422, 'topics'}
      elseif shard.lanes + fresh_lanes >= MOST_LANES then
        answer = {422, 'lanes'}
      else
        fresh_lanes = fresh_lanes + 1
        if is_new then fresh_topics[field], n_fresh = true, n_fresh + 1 end
      end
    end
    judged[lane] = answer
    return answer
  end

  -- Lanes that jobs are submitted to, with their words.
  function topics.arrive(lanes)
    local names, noted, members = {}, {}, {}
    for lane, words in pairs(lanes) do
      names[#names + 1], names[#names + 2] = lane, topics.field(topic_in(words))
    end
    rows_load(names)
    for lane, words in pairs(lanes) do
      local topic, is_new = topic_in(words), not rows[lane]
      local field = topics.field(topic)
      local n, at, paused = topics.row(field)
      if is_new then
        rows[lane] = NO_COUNTS .. words
        members[#members + 1], members[#members + 2] = 0, topic .. ' ' .. lane
        count('lanes', 1)
        if n == 0 and paused == 0 then count('topics', 1) end
      end
      if at ~= hour() then noted[#noted + 1], noted[#noted + 2] = hour(), topic end
      if is_new or at ~= hour() then put_row(field, is_new and n + 1 or n, hour(), paused) end
    end
    note(noted, members)
    sliced('ZADD', KEY.index, members)
  end

  -- Takes away rows of lanes, which must have been read. What has ended in them is counted by their
  -- topics from here on; `fewer` is by how many lanes less each of these has.
  function topics.drop_rows(lanes, fewer)
    local fields, members = {}, {}
    for i, lane in ipairs(lanes) do
      fields[i], members[i] = topics.field(topic_in(lane_words(lane))), member(lane)
    end
    rows_load(fields)
    for i, field in ipairs(fields) do
      local n, at, paused = topics.row(field)
      local _, _, _, _, done, cancelled = read(COUNTS, rows[lanes[i]])
      if rows[field] then put_row(field, max(0, n - fewer), at, paused, done, cancelled) end
      if fewer > 0 and n == fewer and paused == 0 then count('topics', -1) end
    end
    sliced('ZREM', KEY.index, members)
    sliced('HDEL', KEY.shard, lanes)
  end

  -- Lanes that have no job left.
  function topics.forget_lanes(lanes)
    topics.drop_rows(lanes, 1)
    count('lanes', -#lanes)
  end

  local function learn(topic)
    local members = {}
    note({hour(), topic}, members)
    sliced('ZADD', KEY.index, members)
  end

  -- Sets how many lanes a topic has, where that was counted wrong; one that was not known is from
  -- here on. Its row must have been read.
  function topics.set_lanes(topic, lanes)
    local field = topics.field(topic)
    local is_new, _, at, paused = not rows[field], topics.row(field)
    put_row(field, lanes, is_new and hour() or at, paused)
    if is_new then learn(topic) end
  end

  -- What of a row is missing in the lists: its name in `index`, or its topic in `topics`.
  function topics.unlisted(name)
    local topic = string.match(name, '^topic:(.+)$')
    if topic and topics.is_row(rows[name]) then
      return not (call('ZSCORE', KEY.index, topic .. ' ') and call('ZSCORE', KEY.topics, topic)) and topic .. ' '
    end
    return not call('ZSCORE', KEY.index, member(name)) and member(name)
  end

  -- Lists a row again: the name that `unlisted` gave.
  function topics.list(name)
    local topic = topic_in(name)
    call('ZADD', KEY.index, 0, name)
    if #name == #topic + 1 then
      local _, at = topics.row(topics.field(topic))
      call('ZADD', KEY.topics, 'NX', at, topic)
    end
  end

  -- Whether a lane waits for its topic to be resumed. Its row must have been read, and its topic's.
  function topics.is_parked(lane)
    local _, _, paused = topics.row(topics.field(topic_in(lane_words(lane))))
    return paused > 0 and call('ZSCORE', KEY.parked, member(lane))
  end

  -- Takes a lane that is not to wait for that from those that do.
  function topics.free(lane) call('ZREM', KEY.parked, member(lane)) end

  -- Sets whether a topic is paused; one that was not known is from here on. Its row must have been
  -- read, and `paused` and `topics` of the shard.
  function topics.set_paused(topic, paused)
    local field = topics.field(topic)
    local is_new, n, at, before = not rows[field], topics.row(field)
    put_row(field, n, is_new and hour() or at, paused)
    if is_new then learn(topic) end
    count('pauses', 1)
    local change = (paused > 0 and 1 or 0) - (before > 0 and 1 or 0)
    count('paused', change)
    if n == 0 then count('topics', change) end
  end

  -- Splits lanes, whose rows must have been read: those of topics that are not paused, and those that
  -- are to be parked. `paused` of the shard must have been read.
  function topics.split(lanes)
    if shard.paused == 0 then return lanes, {} end
    local fields, open, held = {}, {}, {}
    for i, lane in ipairs(lanes) do fields[i] = topics.field(topic_in(lane_words(lane) or '')) end
    rows_load(fields)
    for i, lane in ipairs(lanes) do
      local _, _, paused = topics.row(fields[i])
      local list = paused == PAUSED and held or open
      list[#list + 1] = lane
    end
    return open, held
  end

  -- Takes lanes out of their turns.
  function topics.park(lanes, turns)
    local members = {}
    for _, lane in ipairs(lanes) do members[#members + 1], members[#members + 2] = 0, member(lane) end
    sliced('ZADD', KEY.parked, members)
    sliced('ZREM', turns, lanes)
  end

  -- Gives up to `most` parked lanes of a topic their turns again. True when there are more.
  function topics.unpark(topic, most)
    local members = call('ZRANGE', KEY.parked, '[' .. topic .. ' ', '(' .. topic .. '!', 'BYLEX', 'LIMIT', 0, most)
    local lanes, pulls = {}, {}
    for i, name in ipairs(members) do
      local lane = sub(name, #topic + 2)
      local list = is_pull(lane) and pulls or lanes
      list[#list + 1], list[#list + 2] = NOW_US + i, lane
    end
    sliced('ZADD', KEY.lanes, lanes)
    sliced('ZADD', KEY.pulls, pulls)
    if #lanes > 0 then tell('ready ' .. KEY.tag) end
    for i = 2, #pulls, 2 do wake_consumers(pulls[i]) end
    sliced('ZREM', KEY.parked, members)
    return #members == most
  end
end
