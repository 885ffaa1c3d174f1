-- Ordered topics: begins and ends the order of a topic, and lets the next job of a key go that a dead one holds.
-- Uses check, order, records, shard.

-- Returns those of the jobs in a part of `states` that were attempted and have not ended. Reads their records.
local function attempted(entries)
  local found, locs = {}, {}
  for i = 1, #entries, 2 do
    local loc, s = entries[i], state.whole(entries[i + 1])
    local code = s and state.code(s)
    if code == RESERVED or code == DELAYED and state.was_tried(s) then locs[#locs + 1] = loc end
  end
  jobs.load(locs)
  for _, loc in ipairs(locs) do
    if records[loc] and states[loc] then found[#found + 1] = loc end
  end
  return found
end

-- order_topic: delivers jobs of each key of a topic one at a time. The first call begins that, and the calls after it look
--   at the jobs that were attempted before, or at heads that hold their keys no longer.
-- KEYS  shard
-- ARGV  topic, what the death of a head means (n: the next one goes, h: it holds its key), what the call before returned
--   or '0', about how many jobs to look at
-- Returns what the next call is given; '' after the last one
function scripts.order_topic(args)
  local topic, place = args[1], args[3]
  shard.begin()
  local is_new, is_freed = order.begin(topic, args[2])
  -- A place is what is looked at, the server's run in which that began, and a cursor.
  local what, began_in, cursor = string.match(place, '^(%a)(%x*)%-(%d+)$')
  if not what then what, began_in, cursor = is_new and 's' or is_freed and 'd', '', '0' end
  local answer = ''
  if what then
    local key = what == 's' and KEY.states or KEY.heads .. topic
    local run, following, entries = check.scan('HSCAN', key, cursor, began_in, tonumber(args[4]))
    if not following then
      -- The server was restarted, and cursors with it.
      answer = what .. run .. '-0'
    else
      if what == 's' then
        order.adopt(topic, attempted(entries))
      else
        local keys = {}
        for i = 1, #entries, 2 do keys[#keys + 1] = entries[i] end
        order.free(topic, keys)
      end
      if following ~= '0' then
        answer = what .. run .. '-' .. following
      elseif what == 's' and is_freed then
        answer = 'd-0'
      else
        order.complete(topic)
      end
    end
  end
  shard.close()
  return answer
end

-- unorder_topic: delivers the jobs of a topic in any order again. Each call makes some of the jobs that wait deliverable.
-- KEYS  shard
-- ARGV  topic, about how many jobs at most
-- Returns 1 if there are more, else 0
function scripts.unorder_topic(args)
  shard.begin()
  local has_more = order.finish(args[1], tonumber(args[2]))
  shard.close()
  return has_more and 1 or 0
end

-- topic_order: how a topic is ordered.
-- KEYS  shard
-- ARGV  topic
-- Returns {what the death of a head means, since when the order holds (ms), 0 for not yet}; {'', 0} if it is not ordered
function scripts.topic_order(args)
  local mode, since = order.mode(args[1])
  return {mode or '', since or 0}
end

-- unblock: lets the next job of a key go that a dead job holds.
-- KEYS  shard
-- ARGV  topic, key
-- Returns 1, or 0 if no dead job holds the key
function scripts.unblock(args)
  shard.begin()
  local is_held = order.unblock(args[1], args[2])
  shard.close()
  return is_held and 1 or 0
end
