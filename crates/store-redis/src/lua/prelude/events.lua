-- Events: what happens to jobs, told to whoever watches. They are gathered only while `watched` of
-- the shard, a time in ms, lies ahead; `close` tells them, in the order in which they happened.
--
-- A message is FORMAT, the time (6), how many names there are (2), these, each behind its length,
-- and the events: which of the names is the topic (2, from 0), the id behind its length, the kind,
-- and what belongs to it. Of a submitted job its due time (6). Of an attempt its outcome, number
-- (4), when the job is due again, or 0 (6), status or 0 (2), duration in ms, or the largest number
-- where that is not known (4), and the error behind its length. Of a dead job the reason behind its length.
do
  local FORMAT, MOST, LOST = 1, 500, 5
  local IS_SUBMITTED, IS_PROMOTED, IS_ATTEMPT = char(1), char(2), char(3)
  local IS_DONE, IS_DEAD, IS_CANCELLED = char(4), char(5), char(6)
  -- What was seen of an attempt, where nothing is known of that; and of one that is not tried again.
  local UNSEEN = '\0\0\255\255\255\255\0'
  local NO_MORE = NO_TIME .. UNSEEN
  -- Jobs, lanes and what happened, in order; ids by job, each behind its length; what is told of a
  -- success by the number of its attempt, which most have in common.
  local locs, lanes, told, ids, successes

  events.FIELD = 'watched'

  function events.begin(till)
    events.on = till > NOW
    if events.on then locs, lanes, told, ids, successes = {}, {}, {}, {}, {} end
  end

  local function add(loc, lane, what)
    local n = #locs + 1
    locs[n], lanes[n], told[n] = loc, lane, what
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

  -- `last` is the failed attempt with the reason, as a run ends with them.
  local function reason_in(last) return sub(last, 15 + byte(last, 13)) end
  function events.dead(loc, lane, last) if events.on then died(loc, lane, reason_in(last)) end end

  -- An attempt whose lease ran out: its number is that of the run.
  function events.lost(loc, lane, r) if events.on then add(loc, lane, IS_ATTEMPT .. char(LOST) .. sub(r, 9, 12) .. NO_MORE) end end
  function events.dead_by_loss(loc, lane, why) if events.on then died(loc, lane, why) end end

  function events.completed(loc, lane, r)
    if not events.on then return end
    local number = sub(r, 9, 12)
    local success = successes[number] or IS_ATTEMPT .. char(COMPLETE) .. number .. NO_MORE
    successes[number] = success
    local n = #locs
    locs[n + 1], lanes[n + 1], told[n + 1] = loc, lane, success
    locs[n + 2], lanes[n + 2], told[n + 2] = loc, lane, IS_DONE
  end

  -- The word on a lease, and what it makes of the job: as `apply` does it.
  function events.settled(loc, lane, r, o)
    if not events.on then return end
    local kind, ends = byte(o), is_cancel_requested(r)
    local seen, due, last = UNSEEN, NO_TIME, sub(o, 9)
    -- What is released was not tried.
    if kind <= BURY and last ~= '' then seen = sub(last, 7, 13) .. sub(last, 15, 14 + byte(last, 13)) end
    local is_later = kind == RETRY or kind > BURY and outcome_delay(o) > 0
    if is_later and not ends then due = six(NOW_UP + outcome_delay(o)) end
    add(loc, lane, IS_ATTEMPT .. char(kind) .. sub(r, 9, 12) .. due .. seen)
    if kind == COMPLETE then
      add(loc, lane, IS_DONE)
    elseif ends then
      add(loc, lane, IS_CANCELLED)
    elseif kind == BURY then
      died(loc, lane, reason_in(last))
    end
  end

  -- The ids of all jobs that something was gathered of: to be read before a record goes.
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
      ids[unknown[i]] = record(raw) and id_in(raw, RECORD)
    end
  end

  local function publish(first, last)
    local names, of_lane, parts, n = {}, {}, {}, 0
    for i = first, last do
      local id, lane = ids[locs[i]], lanes[i]
      if of_lane[lane] == nil then
        local words = lane_words(lane)
        local topic = words and topic_in(words)
        of_lane[lane] = topic and pack('>I2', #names) or false
        if topic then names[#names + 1] = char(#topic) .. topic end
      end
      -- One whose name nobody can tell any more is passed over.
      if id and of_lane[lane] then
        parts[n + 1], parts[n + 2], parts[n + 3] = of_lane[lane], id, told[i]
        n = n + 3
      end
    end
    if n == 0 then return end
    -- A user who may not publish there keeps no edge from its work.
    redis.pcall('PUBLISH', KEY.events, pack('>BI6I2', FORMAT, NOW, #names) .. concat(names) .. concat(parts))
  end

  function events.close()
    if not events.on or #locs == 0 then return end
    events.know()
    rows_load(lanes)
    for first = 1, #locs, MOST do publish(first, min(first + MOST - 1, #locs)) end
  end
end
