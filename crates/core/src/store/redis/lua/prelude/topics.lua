-- Topics by the hour of their last submit: the latest ones, at most so many in a shard.
local MOST_TOPICS = 10000
local function topics_add(topics)
  local hour, added = math.floor(NOW / 3600000), 0
  for topic in pairs(topics) do added = added + call('ZADD', K .. ':topics', hour, topic) end
  if added > 0 then call('ZREMRANGEBYRANK', K .. ':topics', 0, -MOST_TOPICS - 1) end
end
