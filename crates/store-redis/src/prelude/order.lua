-- Ordered topics: their jobs of one key are delivered one at a time. The first of a key is its head, and only the head may
-- be delivered. The other ready jobs of the key wait behind it, and are in no ready queue.
--
-- A job's key is the part of its id before the first '~'; a firing of a schedule has none, so its whole id counts as one.
-- Jobs go by their places: the due time (6 bytes) and the number of the record (6), which only grows. A job that was
-- attempted stays the head until it has ended; one that was not gives way to a job with a smaller place.
--
-- `ordered` is a hash of the ordered topics: what the death of a head means, NEXT or HOLD, or ENDING while the jobs that
-- wait become deliverable; and since when the order holds (6 bytes, ms), 0 while attempted jobs are looked for. The field
-- `ordered` is their number. For each topic, `heads:<topic>` is a hash of the heads by key: the locator, and how many
-- jobs wait behind it (4 bytes); one more entry has no key. `behind:<topic>` is a sorted set of these, all with the score
-- 0: the key, a space, the place, the locator. The field `waiting_keys` is the number of keys with jobs that wait,
-- `numbered` the last number, and `ordered_at` the latest due time (ms) of a job that was due when it came.
--
-- A head whose job is gone, because a call has failed half-way, gives way to the next job of its key that becomes ready.
-- Uses arrivals, due, due_index, lanes, ready, records, shard.
do
  local NEXT, HOLD, ENDING = 'n', 'h', 'e'
  -- The most keys with jobs that wait; how many due jobs a submit makes ready; and how far (ms) the clock may be set back
  -- before the order of jobs that are due at once follows it.
  local MOST_KEYS, MOST_DUE, LONGEST_BACK = 100000, 1000, 60000
  -- Rows of `ordered` by topic; topics by lane, false for one that is not ordered; heads by topic and key, as {locator,
  -- how many wait}, false for none; those to be written; and locators of the jobs that have become heads in this call, and
  -- of those that become ready in it.
  local marks, lane_topics, heads, changed, chosen, arriving

  function order.start() marks, lane_topics, heads, changed, chosen, arriving = {}, {}, {}, {}, {}, {} end

  -- Whether the shard has ordered topics.
  function order.is_used() return fields.unusual >= shard.ORDERED end

  local function mark_of(topic)
    if marks[topic] == nil then marks[topic] = call('HGET', KEY.ordered, topic) end
    return marks[topic]
  end
  -- Returns the mode of a topic, nil if it is not ordered; and since when it is (ms).
  function order.mode(topic)
    local mark = mark_of(topic)
    if mark and byte(mark) ~= byte(ENDING) then return sub(mark, 1, 1), (read('>I6', mark, 2)) end
  end
  -- Sets the mode of a topic; nil removes it.
  local function set_mark(topic, mode, since)
    marks[topic] = mode and mode .. six(since) or false
    if mode then call('HSET', KEY.ordered, topic, marks[topic]) else call('HDEL', KEY.ordered, topic) end
    shard.set('ordered', call('HLEN', KEY.ordered))
  end

  -- Returns the topic of a lane, and its mode, if it is ordered.
  local function topic_of(lane)
    if not order.is_used() then return nil end
    local topic = lane_topics[lane]
    if topic == nil then
      shard.load_rows({lane})
      local name = lanes.name(lane) or arrivals.lane_name(lane)
      topic = name and lanes.topic(name) or false
      topic = topic and order.mode(topic) and topic
      lane_topics[lane] = topic
    end
    if topic then return topic, order.mode(topic) end
  end
  function order.has(lane) return topic_of(lane) ~= nil end

  local function place_of_job(raw, due) return due .. record.number(raw) end
  local function is_before(a, b)
    local due_a, number_a = read('>I6I6', a)
    local due_b, number_b = read('>I6I6', b)
    return due_a < due_b or due_a == due_b and number_a < number_b
  end
  local function was_tried(loc)
    jobs.load_new({loc})
    return states[loc] and state.was_tried(states[loc]) or false
  end
  -- Whether a job is ready since this due time (6 bytes).
  local function is_ready(loc, due)
    jobs.load_new({loc})
    local raw, s = records[loc], states[loc]
    if not raw or jobs.due(raw, s) ~= due then return false end
    return arriving[loc] or due_index.code(loc, raw, s) == READY
  end

  -- Reads the heads of keys.
  local function load_heads(topic, keys)
    local known, new = heads[topic], {}
    if not known then
      known = {}
      heads[topic] = known
    end
    for _, key in ipairs(keys) do
      if known[key] == nil then
        known[key] = false
        new[#new + 1] = key
      end
    end
    for i, stored in ipairs(fetch(KEY.heads .. topic, new)) do
      known[new[i]] = stored and #stored == 16 and {sub(stored, 1, 12), (read('>I4', stored, 13))} or false
    end
  end
  -- Returns the head of a key, {locator, how many wait}, or false. Changes of it must be followed by `touch`.
  local function head_of(topic, key)
    local known = heads[topic]
    if not known or known[key] == nil then
      load_heads(topic, {key})
      known = heads[topic]
    end
    return known[key]
  end
  local function touch(topic, key)
    changed[topic] = changed[topic] or {}
    changed[topic][key] = true
  end
  local function set_head(topic, key, loc)
    local head = head_of(topic, key)
    heads[topic][key] = {loc, head and head[2] or 0}
    chosen[loc] = true
    touch(topic, key)
  end
  local function count(topic, key, more)
    local head = head_of(topic, key)
    local before = head[2]
    head[2] = max(0, before + more)
    if before == 0 and more > 0 then shard.count('waiting_keys', 1) end
    if before > 0 and head[2] == 0 then shard.set('waiting_keys', max(0, fields.waiting_keys - 1)) end
    touch(topic, key)
  end

  local function member(key, place, loc) return key .. ' ' .. place .. loc end
  local function put_behind(topic, key, loc, place)
    if call('ZADD', KEY.behind .. topic, '0', member(key, place, loc)) == 1 then count(topic, key, 1) end
  end

  -- Makes the first job that waits for a key its head, and puts it into its ready queue, unless it is `own`, which the
  -- caller puts there. Without such a job the key has no head any more.
  local function choose(topic, key, own)
    while head_of(topic, key)[2] > 0 do
      local found = call('ZRANGE', KEY.behind .. topic, '[' .. key .. ' ', '(' .. key .. '!', 'BYLEX', 'LIMIT', '0', '1')[1]
      if not found then break end
      local loc, due = sub(found, -12), sub(found, -24, -19)
      call('ZREM', KEY.behind .. topic, found)
      count(topic, key, -1)
      if is_ready(loc, due) then
        set_head(topic, key, loc)
        if loc ~= own then ready.put(record.lane(records[loc]), {due_index.entry(loc, due)}, 'RPUSH') end
        return
      end
    end
    if head_of(topic, key)[2] > 0 then count(topic, key, -head_of(topic, key)[2]) end
    heads[topic][key] = false
    touch(topic, key)
  end

  -- Whether a job remains the head of its key: it is ready, was attempted and has not ended, or is dead and holds the key.
  local function stays(loc, mode)
    if chosen[loc] then return true end
    jobs.load_new({loc})
    local raw, s = records[loc], states[loc]
    if not raw then return false end
    local code = s and state.code(s) or DELAYED
    if code == DEAD then return mode == HOLD end
    if code ~= DELAYED then return code == RESERVED end
    return s and state.was_tried(s) or due_index.code(loc, raw, s) == READY
  end

  -- Puts a job that is ready into the order of its key: as the head or behind it.
  local function enter(topic, mode, key, loc, place)
    local head = head_of(topic, key)
    if not head then
      set_head(topic, key, loc)
    elseif head[1] == loc then
      return
    elseif not stays(head[1], mode) then
      put_behind(topic, key, loc, place)
      choose(topic, key, loc)
    else
      local first = head[1]
      local its_place = not was_tried(first) and records[first]
        and place_of_job(records[first], jobs.due(records[first], states[first]))
      if its_place and is_before(place, its_place) then
        set_head(topic, key, loc)
        put_behind(topic, key, first, its_place)
      else
        put_behind(topic, key, loc, place)
      end
    end
  end

  -- Returns those entries of ready jobs of a lane that may be delivered. The others wait from here on.
  function order.admit(lane, entries)
    local topic, mode = topic_of(lane)
    if not topic then return entries end
    local locs, keys, admitted = {}, {}, {}
    for i, entry in ipairs(entries) do
      locs[i] = sub(entry, 1, 12)
      arriving[locs[i]] = true
    end
    jobs.load_new(locs)
    for i, loc in ipairs(locs) do keys[i] = records[loc] and record.key(records[loc]) or '' end
    load_heads(topic, keys)
    for i, loc in ipairs(locs) do
      if keys[i] ~= '' then enter(topic, mode, keys[i], loc, place_of_job(records[loc], sub(entries[i], 13))) end
    end
    for i, loc in ipairs(locs) do
      local head = head_of(topic, keys[i])
      if keys[i] == '' or head and head[1] == loc then admitted[#admitted + 1] = entries[i] end
    end
    return admitted
  end

  -- Returns the entries, as a set, of the first `most` of a queue that a reserve may give; nil if it may give all.
  function order.admitted(lane, entries, most)
    if not order.has(lane) then return nil end
    local some, admitted = {}, {}
    for i = 1, most do some[i] = entries[i] end
    for _, entry in ipairs(order.admit(lane, ready.counting(lane, some))) do admitted[entry] = true end
    return admitted
  end

  -- Reads what `leave` needs of many jobs: their records, and the heads of their keys.
  function order.load(locs)
    local keys = {}
    for i, raw in ipairs(fetch(KEY.pool, locs)) do records[locs[i]] = record.whole(raw) end
    for _, loc in ipairs(locs) do
      local topic = records[loc] and topic_of(record.lane(records[loc]))
      if topic then append(keys, topic, record.key(records[loc])) end
    end
    for topic, own in pairs(keys) do load_heads(topic, own) end
  end

  -- Takes a job out of the order that ends, or whose place another one takes, before it is removed.
  function order.leave(loc, raw, s)
    local topic = raw and topic_of(record.lane(raw))
    if not topic then return end
    local key = record.key(raw)
    local head = head_of(topic, key)
    if head and head[1] == loc then
      choose(topic, key)
    elseif head and head[2] > 0 then
      local place = place_of_job(raw, jobs.due(raw, s))
      if call('ZREM', KEY.behind .. topic, member(key, place, loc)) == 1 then count(topic, key, -1) end
    end
  end

  -- Lets the next job of a key go after its head has died, unless that holds the key. Its record must have been read.
  function order.note_death(loc, lane)
    local topic, mode = topic_of(lane)
    if topic and mode == NEXT then order.leave(loc, records[loc], states[loc]) end
  end

  -- Whether a dead job holds its key.
  function order.holds(loc, raw)
    local topic, mode = topic_of(record.lane(raw))
    local head = mode == HOLD and head_of(topic, record.key(raw))
    return head and head[1] == loc or false
  end

  -- Returns how many jobs go before a ready job, counted to `most`, and the head of its key; nil if it is the head.
  function order.before(loc, raw, s, most)
    local topic = topic_of(record.lane(raw))
    local key = topic and record.key(raw)
    local head = key and head_of(topic, key)
    if not head or head[1] == loc then return nil end
    local own = member(key, place_of_job(raw, jobs.due(raw, s)), loc)
    local before = call('ZLEXCOUNT', KEY.behind .. topic, '[' .. key .. ' ', '(' .. own)
    return min(before + 1, most), head[1]
  end

  -- Whether a ready job waits behind a head that stays.
  function order.is_behind(loc, raw, s)
    local topic, mode = topic_of(record.lane(raw))
    local key = topic and record.key(raw)
    local head = key and head_of(topic, key)
    if not head or head[1] == loc or not stays(head[1], mode) then return false end
    return call('ZSCORE', KEY.behind .. topic, member(key, place_of_job(raw, jobs.due(raw, s)), loc)) and true or false
  end

  -- Whether a new job that is due at once would be the first to wait for its key, and too many keys have such jobs.
  -- `raw` is its record.
  function order.is_full(lane, raw)
    local topic, mode = topic_of(lane)
    if not topic or fields.waiting_keys < MOST_KEYS then return false end
    local head = head_of(topic, record.key(raw))
    return head and head[2] == 0 and stays(head[1], mode) or false
  end

  -- Returns the record of a new job from its flags on, with the next number if its topic is ordered.
  function order.numbered(lane, rest)
    if not order.has(lane) then return rest end
    shard.count('numbered', 1)
    return record.with_number(rest, six(fields.numbered))
  end

  -- Returns the due time (ms) of a job of a lane that is due when it comes, no earlier than that of the last such job.
  function order.due_at_once(lane)
    if not order.has(lane) then return NOW end
    local last = fields.ordered_at
    local at = last > NOW and last - NOW <= LONGEST_BACK and last or NOW
    if at ~= last then shard.set('ordered_at', at) end
    return at
  end

  -- Makes due jobs ready, before others come to ordered topics or are moved, so that these go after them.
  function order.promote_due()
    if not order.is_used() or fields.next > NOW then return end
    if due.promote(due.first_scheduled(), MOST_DUE, due.bound()) == 0 then return end
    ready.wake()
    shard.close()
  end

  -- Writes the heads that have changed.
  function order.save()
    if next(changed) == nil then return end
    for topic, keys in pairs(changed) do
      local new, gone = {}, {}
      for key in pairs(keys) do
        local head = heads[topic][key]
        if head then
          new[#new + 1], new[#new + 2] = key, head[1] .. pack('>I4', head[2])
        else
          gone[#gone + 1] = key
        end
      end
      sliced('HSET', KEY.heads .. topic, new)
      sliced('HDEL', KEY.heads .. topic, gone)
    end
    changed = {}
    ready.wake()
  end

  -- Begins the order of a topic, or changes what the death of a head means. Returns whether jobs that were attempted
  -- before are still to be looked for, and whether heads that have died may hold keys that they no longer hold.
  function order.begin(topic, mode)
    local former, since = order.mode(topic)
    if former ~= mode then set_mark(topic, mode, former and since or 0) end
    -- A long value, under no key, makes the hash a table, which need not be searched.
    if not former then call('HSET', KEY.heads .. topic, '', LONG_VALUE) end
    return not former or since == 0, former == HOLD and mode == NEXT
  end
  -- Notes that the order holds for all jobs.
  function order.complete(topic)
    local mode, since = order.mode(topic)
    if mode and since == 0 then set_mark(topic, mode, NOW) end
  end

  -- Lets jobs that were attempted and have not ended be the heads of their keys, if they are of the topic: the first of
  -- each key. Their records and states must have been read.
  function order.adopt(topic, locs)
    local names = {}
    for i, loc in ipairs(locs) do names[i] = record.lane(records[loc]) end
    shard.load_rows(names)
    for i, loc in ipairs(locs) do
      local raw, name = records[loc], lanes.name(names[i])
      if name and lanes.topic(name) == topic then
        local key, place = record.key(raw), place_of_job(raw, sub(raw, 1, 6))
        local head = head_of(topic, key)
        local first = head and head[1] ~= loc and records[head[1]] or head and head[1] ~= loc and jobs.get(head[1])
        if not first then
          if not head or head[1] ~= loc then set_head(topic, key, loc) end
        elseif not was_tried(head[1]) then
          local its_due = jobs.due(first, states[head[1]])
          put_behind(topic, key, head[1], place_of_job(first, its_due))
          set_head(topic, key, loc)
        elseif is_before(place, place_of_job(first, sub(first, 1, 6))) then
          set_head(topic, key, loc)
        end
      end
    end
  end

  -- Lets the next job of a key go if a dead one holds it. Returns whether one did.
  function order.unblock(topic, key)
    local head = order.is_used() and order.mode(topic) == HOLD and head_of(topic, key)
    local _, s = nil, nil
    if head then _, s = jobs.get(head[1]) end
    if not s or state.code(s) ~= DEAD then return false end
    choose(topic, key)
    return true
  end

  -- Lets the next job of each of these keys go whose head is gone or dead and does not hold it.
  function order.free(topic, keys)
    for _, key in ipairs(keys) do
      local head = head_of(topic, key)
      if head and not stays(head[1], NEXT) then choose(topic, key) end
    end
  end

  -- Makes about `most` of the jobs that wait deliverable, all of a key together, and ends the order after the last ones.
  -- Returns whether there are more.
  function order.finish(topic, most)
    if not mark_of(topic) then return false end
    set_mark(topic, ENDING, 0)
    local found, keys = call('ZRANGE', KEY.behind .. topic, '0', whole(most - 1)), 0
    local n, last = #found, nil
    -- The last key may have more jobs, so it is left to the next call if it is not the only one.
    if n == most then
      local end_key = string.match(found[n], '^[^ ]*')
      local first = n
      while first > 1 and string.match(found[first - 1], '^[^ ]*') == end_key do first = first - 1 end
      if first > 1 then n = first - 1 end
    end
    local leaving = {}
    for i = 1, n do
      local loc, due, key = sub(found[i], -12), sub(found[i], -24, -19), string.match(found[i], '^[^ ]*')
      if key ~= last then keys, last = keys + 1, key end
      if is_ready(loc, due) then ready.put(record.lane(records[loc]), {due_index.entry(loc, due)}, 'RPUSH') end
      leaving[i] = found[i]
    end
    sliced('ZREM', KEY.behind .. topic, leaving)
    local is_over = #found < most
    if not is_over and n == most then keys = keys - 1 end
    shard.set('waiting_keys', max(0, fields.waiting_keys - keys))
    if is_over then
      call('UNLINK', KEY.heads .. topic)
      set_mark(topic, nil)
    end
    ready.wake()
    return not is_over
  end
end
