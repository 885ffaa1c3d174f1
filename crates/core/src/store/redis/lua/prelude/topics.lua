-- Topics by the hour of their last submit: the latest ones, at most so many in a shard.
local MOST_TOPICS = 10000
local function hour() return floor(NOW / 3600000) end
local function topics_add(topics)
  local added = 0
  for topic in pairs(topics) do added = added + call('ZADD', KEY.topics, hour(), topic) end
  if added > 0 then call('ZREMRANGEBYRANK', KEY.topics, 0, -MOST_TOPICS - 1) end
end

-- Lanes that jobs are submitted to. A topic is noted once an hour for each of its lanes.
local function lanes_arrive(words_of)
  local topics, lanes = {}, {}
  for lane in pairs(words_of) do lanes[#lanes + 1] = lane end
  lanes_load(lanes)
  for lane, words in pairs(words_of) do
    local row = lane_rows[lane]
    if not row or read('>I4', row, 7) ~= hour() then
      lane_rows[lane] = six(row and read('>I6', row) or 0) .. pack('>I4', hour()) .. words
      topics[topic_in(words)] = true
    end
  end
  topics_add(topics)
end
