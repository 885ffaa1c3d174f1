-- Topics. Each known one has a row in `shard`, under `topic:<name>`: how many lanes it has (4
-- bytes) and the hour of its last submit (4 bytes). `topics` has them by that hour. `index` has
-- them by name, and behind each its lanes: `<name> ` and `<name> <lane>`. One without lanes stays
-- known until there are too many.
local hour
do
  local TOPIC, MOST_KNOWN, A_FEW = '>I4I4', 10000, 16

  function hour() return floor(NOW / 3600000) end
  function topics.field(topic) return 'topic:' .. topic end

  -- How many lanes a topic has, and the hour of its last submit. Its row must have been read.
  function topics.row(field)
    local row = rows[field]
    if not row then return 0, 0 end
    return read(TOPIC, row)
  end

  local function put_row(field, lanes, at)
    rows[field] = pack(TOPIC, lanes, at)
    set(field, rows[field])
  end

  -- When there are too many, the longest known ones that have no lanes are forgotten. Those that
  -- have some go behind the others.
  local function trim()
    local left = call('ZCARD', KEY.topics) - MOST_KNOWN
    if left <= 0 then return end
    local oldest, fields, gone, kept = call('ZRANGE', KEY.topics, 0, A_FEW - 1), {}, {}, {}
    for i, topic in ipairs(oldest) do fields[i] = topics.field(topic) end
    rows_load(fields)
    for i, topic in ipairs(oldest) do
      if topics.row(fields[i]) > 0 then
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
      local n, at = topics.row(field)
      if is_new then
        rows[lane] = NO_JOBS .. words
        members[#members + 1], members[#members + 2] = 0, topic .. ' ' .. lane
        count('lanes', 1)
        if n == 0 then count('topics', 1) end
      end
      if at ~= hour() then noted[#noted + 1], noted[#noted + 2] = hour(), topic end
      if is_new or at ~= hour() then put_row(field, is_new and n + 1 or n, hour()) end
    end
    note(noted, members)
    sliced('ZADD', KEY.index, members)
  end

  -- Lanes that have no job left.
  function topics.forget_lanes(lanes)
    local fields, members = {}, {}
    for i, lane in ipairs(lanes) do
      local topic = topic_in(lane_words(lane))
      fields[i], members[i] = topics.field(topic), topic .. ' ' .. lane
    end
    rows_load(fields)
    for _, field in ipairs(fields) do
      local n, at = topics.row(field)
      if n > 0 then put_row(field, n - 1, at) end
      if n == 1 then count('topics', -1) end
    end
    count('lanes', -#lanes)
    sliced('ZREM', KEY.index, members)
    sliced('HDEL', KEY.shard, lanes)
  end
end
