-- Events of jobs, published to subscribers. They are collected only while the field
-- `watched`, a time in ms, has not come. `close` publishes them in the order in which they happened.
--
-- A message is FORMAT, the time (6), the number of topics (2), the topics, each after its length, and the
-- events. An event is the number of its topic (2, from 0), the id after its length, the kind, and more:
-- - submitted: the due time (6).
-- - attempt: outcome, number (4), when the job is due again or 0 (6), status or 0 (2), duration in ms or
--   the largest number if it is not known (4), and the error after its length.
-- - dead: the reason after its length.
do
  local FORMAT, MOST, LOST = 1, 500, 5
  local IS_SUBMITTED, IS_PROMOTED, IS_ATTEMPT = char(1), char(2), char(3)
  local IS_DONE, IS_DEAD, IS_CANCELLED = char(4), char(5), char(6)
  -- Status, duration and error of an attempt of which nothing is known; and the same behind the due time of a
  -- job that is not tried again.
  local UNSEEN = '\0\0\255\255\255\255\0'
  local NO_MORE = NO_TIME .. UNSEEN
  -- Jobs, lanes and packed events, in order; ids by job, each after its length; and packed successes by
  -- the number of the attempt, which most jobs share.
  local locs, lane_ids, happened, ids, successes

  events.FIELD = 'watched'

  function events.begin(till)
    events.on = till > NOW
    if events.on then locs, lane_ids, happened, ids, successes = {}, {}, {}, {}, {} end
  end

  local function add(loc, lane, what)
    local n = #locs + 1
    locs[n], lane_ids[n], happened[n] = loc, lane, what
  end

  local function id_in(text, at) return sub(text, at, at + byte(text, at)) end

  -- `rest` is the record from its flags on.
  function events.submitted(loc, lane, due, rest)
    if not events.on then return end
    ids[loc] = id_in(rest, RECORD - 12)
    add(loc, lane, IS_SUBMITTED .. due)
  end

  function events.promoted(loc, lane) if events.on then add(loc, lane, IS_PROMOTED) end end
  function events.promoted_all(entries, lane)
    if not events.on then return end
    for _, entry in ipairs(entries) do add(sub(entry, 1, 12), lane, IS_PROMOTED) end
  end

  function events.done(loc, lane) if events.on then add(loc, lane, IS_DONE) end end
  function events.cancelled(loc, lane) if events.on then add(loc, lane, IS_CANCELLED) end end

  local function died(loc, lane, why) add(loc, lane, IS_DEAD .. char(#why) .. why) end

  -- `last` is the failed attempt with the reason, packed as a job state ends with them.
  local function reason_in(last) return sub(last, 15 + byte(last, 13)) end
  function events.dead(loc, lane, last) if events.on then died(loc, lane, reason_in(last)) end end

  -- The attempt of a lease that ran out. Its number is in the job state.
  function events.lost(loc, lane, s)
    if events.on then add(loc, lane, IS_ATTEMPT .. char(LOST) .. sub(s, 9, 12) .. NO_MORE) end
  end
  function events.dead_by_loss(loc, lane, why) if events.on then died(loc, lane, why) end end

  function events.completed(loc, lane, s)
    if not events.on then return end
    local number = sub(s, 9, 12)
    local success = successes[number] or IS_ATTEMPT .. char(outcomes.COMPLETE) .. number .. NO_MORE
    successes[number] = success
    local n = #locs
    locs[n + 1], lane_ids[n + 1], happened[n + 1] = loc, lane, success
    locs[n + 2], lane_ids[n + 2], happened[n + 2] = loc, lane, IS_DONE
  end

  -- The outcome of a lease and the state that it leads to, as `outcomes.apply` decides.
  function events.settled(loc, lane, s, o)
    if not events.on then return end
    local kind, ends = byte(o), state.is_cancel_requested(s)
    local seen, due, last = UNSEEN, NO_TIME, sub(o, 9)
    -- A released job was not tried.
    if kind <= outcomes.BURY and last ~= '' then seen = sub(last, 7, 13) .. sub(last, 15, 14 + byte(last, 13)) end
    local is_later = kind == outcomes.RETRY or kind > outcomes.BURY and outcomes.delay(o) > 0
    if is_later and not ends then due = six(NOW_UP + outcomes.delay(o)) end
    add(loc, lane, IS_ATTEMPT .. char(kind) .. sub(s, 9, 12) .. due .. seen)
    if kind == outcomes.COMPLETE then
      add(loc, lane, IS_DONE)
    elseif ends then
      add(loc, lane, IS_CANCELLED)
    elseif kind == outcomes.BURY then
      died(loc, lane, reason_in(last))
    end
  end

  -- Reads the ids of all jobs with events. Must run before a record goes.
  function events.know()
    if not events.on then return end
    local unknown = {}
    for _, loc in ipairs(locs) do
      if ids[loc] == nil then
        local raw = records[loc]
        ids[loc] = raw and id_in(raw, RECORD) or false
        if not raw then unknown[#unknown + 1] = loc end
      end
    end
    for i, raw in ipairs(fetch(KEY.pool, unknown)) do
      ids[unknown[i]] = record.whole(raw) and id_in(raw, RECORD)
    end
  end

  local function publish(first, last)
    local names, of_lane, parts, n = {}, {}, {}, 0
    for i = first, last do
      local id, lane = ids[locs[i]], lane_ids[i]
      if of_lane[lane] == nil then
        local name = lanes.name(lane)
        local topic = name and lanes.topic(name)
        of_lane[lane] = topic and pack('>I2', #names) or false
        if topic then names[#names + 1] = char(#topic) .. topic end
      end
      -- An event without an id or a topic is skipped.
      if id and of_lane[lane] then
        parts[n + 1], parts[n + 2], parts[n + 3] = of_lane[lane], id, happened[i]
        n = n + 3
      end
    end
    if n == 0 then return end
    -- A user without the right to publish there must not fail the edge.
    redis.pcall('PUBLISH', KEY.events, pack('>BI6I2', FORMAT, NOW, #names) .. concat(names) .. concat(parts))
  end

  function events.close()
    if not events.on or #locs == 0 then return end
    events.know()
    shard.load_rows(lane_ids)
    for first = 1, #locs, MOST do publish(first, min(first + MOST - 1, #locs)) end
  end
end
