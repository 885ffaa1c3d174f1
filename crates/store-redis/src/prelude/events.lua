-- Events of jobs, published to subscribers, and the transitions of a call, returned for the log.
--
-- Events are collected only until the time in the field `watched` (ms). `close` publishes them in the order
-- in which they happened. Transitions are collected only for a caller that asks for them, and are returned by `logged`.
--
-- A message is FORMAT, the time (6), the number of topics (2), the topics, each after its length, and the
-- events. An event is the number of its topic (2, from 0), the id after its length, the kind, and more. If a job among
-- them has tags, the message is WITH_TAGS instead of FORMAT, and each event has the tags behind their length (2) before
-- the kind.
-- - submitted: the due time (6).
-- - attempt: outcome, number (4), when the job is due again or 0 (6), status or 0 (2), duration in ms or
--   the largest number if it is not known (4), and the error after its length.
-- - dead: the reason after its length.
-- Uses lanes, outcomes, records, shard.
do
  local FORMAT, WITH_TAGS, MOST, LOST = 1, 2, 500, 5
  local IS_SUBMITTED, IS_PROMOTED, IS_ATTEMPT = char(1), char(2), char(3)
  local IS_DONE, IS_DEAD, IS_CANCELLED = char(4), char(5), char(6)
  -- Status, duration and error of an attempt that are not known; and the same after the due time 0 of a job that is not
  -- tried again.
  local UNSEEN = '\0\0\255\255\255\255\0'
  local NO_MORE = NO_TIME .. UNSEEN
  -- Transitions whose call has another name.
  local TRANSITIONS = {
    replace = 'submit', revive_many = 'revive', fire = 'submit', purge_many = 'purge', bulk_cancel = 'cancel',
    bulk_run = 'run', bulk_revive = 'revive', bulk_reschedule = 'reschedule', bulk_purge = 'purge',
  }
  -- Jobs, lanes, packed events and transitions, in order. An entry has an event, a transition or both; false means none.
  -- Ids by job, each after its length; the tags of those that have some; and packed successes by the number of the
  -- attempt, which most jobs share.
  local locs, lane_ids, happened, taken, ids, tags, successes
  -- How many of them are published.
  local n_published
  local transition_name

  -- Why a job that was reserved is cancelled.
  events.REQUESTED = 'cancel requested'

  function events.start(name, is_logged)
    events.on, events.is_watched, events.is_logged = false, false, is_logged or false
    transition_name = TRANSITIONS[name] or name
    locs, lane_ids, happened, taken, ids, tags, successes = nil, nil, nil, nil, nil, nil, nil
  end

  function events.begin(till)
    events.is_watched = till > NOW
    events.on = events.is_watched or events.is_logged
    if events.on then locs, lane_ids, happened, taken, ids, tags, successes = {}, {}, {}, {}, {}, {}, {} end
    n_published = 0
  end

  local function add(loc, lane, what, step)
    local n = #locs + 1
    locs[n], lane_ids[n], happened[n], taken[n] = loc, lane, what, step or false
  end

  -- Returns a transition for the log: its name, the codes of the states before and after (nil for none), and a reason;
  -- false if transitions are not logged.
  local function transition(from, to, reason, name)
    return events.is_logged and {name or transition_name, from or 0, to or 0, reason or ''}
  end

  -- Collects a transition without an event.
  function events.step(loc, lane, from, to, reason, name)
    if events.is_logged then add(loc, lane, false, transition(from, to, reason, name)) end
  end

  -- Sets the state of the job whose place the last collected submit takes, and the reason, in its transition.
  function events.came_from(code, reason)
    if events.is_logged then taken[#taken][2], taken[#taken][4] = code, reason end
  end

  -- Remembers the id and the tags of a job. `at` is the position of the id's length in `raw`.
  local function know(loc, raw, at)
    ids[loc] = sub(raw, at, at + byte(raw, at))
    local found = record.tags(raw, at)
    if found ~= '' then tags[loc] = found end
  end

  -- Collects a submit. `rest` is the record from its flags on.
  function events.submitted(loc, lane, due, rest, code)
    if not events.on then return end
    know(loc, rest, RECORD - 12)
    add(loc, lane, IS_SUBMITTED .. due, transition(nil, code))
  end

  function events.promoted(loc, lane, from)
    if events.on then add(loc, lane, IS_PROMOTED, transition(from, READY)) end
  end
  -- A reserve promotes too.
  function events.promoted_all(entries, lane)
    if not events.on then return end
    for _, entry in ipairs(entries) do
      add(sub(entry, 1, 12), lane, IS_PROMOTED, transition(DELAYED, READY, nil, 'promote'))
    end
  end

  -- Collects the end of a job by a success that came after its lease had expired.
  function events.done(loc, lane, from)
    if events.on then add(loc, lane, IS_DONE, transition(from, DONE, 'late', 'complete')) end
  end
  function events.cancelled(loc, lane, from, reason)
    if events.on then add(loc, lane, IS_CANCELLED, transition(from, CANCELLED, reason)) end
  end

  local function died(loc, lane, why, step) add(loc, lane, IS_DEAD .. char(#why) .. why, step) end

  -- Returns the reason in `last`, a failed attempt with the reason, packed as at the end of a job state.
  local function reason_in(last) return sub(last, 15 + byte(last, 13)) end
  -- Collects the death of a job that is imported as dead, and adds the reason to the transition of the import.
  function events.dead(loc, lane, last)
    if not events.on then return end
    if events.is_logged then taken[#taken][4] = reason_in(last) end
    died(loc, lane, reason_in(last))
  end

  -- Collects the end of an attempt whose lease expired. Its number is in the job state.
  function events.lost(loc, lane, s)
    if events.on then add(loc, lane, IS_ATTEMPT .. char(LOST) .. sub(s, 9, 12) .. NO_MORE) end
  end
  function events.dead_by_loss(loc, lane, why)
    if events.on then died(loc, lane, why, transition(RESERVED, DEAD, why)) end
  end

  function events.completed(loc, lane, s)
    if not events.on then return end
    local number = sub(s, 9, 12)
    local success = successes[number] or IS_ATTEMPT .. char(outcomes.COMPLETE) .. number .. NO_MORE
    successes[number] = success
    add(loc, lane, success, transition(RESERVED, DONE, nil, 'complete'))
    add(loc, lane, IS_DONE)
  end

  -- Returns the transition of an outcome; false if transitions are not logged. `ends` says whether a cancel was
  -- requested, `is_later` whether the job has to wait.
  local function edge_of(kind, ends, is_later, last)
    if not events.is_logged then return false end
    if kind == outcomes.COMPLETE then return transition(RESERVED, DONE, nil, 'complete') end
    local name = kind == outcomes.RETRY and 'retry' or kind == outcomes.BURY and 'bury' or 'release'
    if ends then return transition(RESERVED, CANCELLED, events.REQUESTED, name) end
    if kind == outcomes.BURY then return transition(RESERVED, DEAD, reason_in(last), name) end
    return transition(RESERVED, is_later and DELAYED or READY, nil, name)
  end

  -- Collects the outcome of a lease, the transition, and the end of the job if it ends, as `outcomes.apply` decides.
  function events.settled(loc, lane, s, o)
    if not events.on then return end
    local kind, ends = byte(o), state.is_cancel_requested(s)
    local seen, due, last = UNSEEN, NO_TIME, sub(o, 9)
    -- A released job was not tried.
    if kind <= outcomes.BURY and last ~= '' then seen = sub(last, 7, 13) .. sub(last, 15, 14 + byte(last, 13)) end
    local is_later = kind == outcomes.RETRY or kind > outcomes.BURY and outcomes.delay(o) > 0
    if is_later and not ends then due = six(NOW_UP + outcomes.delay(o)) end
    add(loc, lane, IS_ATTEMPT .. char(min(kind, outcomes.RELEASE)) .. sub(s, 9, 12) .. due .. seen, edge_of(kind, ends, is_later, last))
    if kind == outcomes.COMPLETE then
      add(loc, lane, IS_DONE)
    elseif ends then
      add(loc, lane, IS_CANCELLED)
    elseif kind == outcomes.BURY then
      died(loc, lane, reason_in(last))
    end
  end

  -- Reads the ids of all jobs that were collected. Must run before a record is removed.
  function events.know()
    if not events.on then return end
    local unknown = {}
    for _, loc in ipairs(locs) do
      if ids[loc] == nil then
        local raw = records[loc]
        ids[loc] = false
        if raw then know(loc, raw, RECORD) else unknown[#unknown + 1] = loc end
      end
    end
    for i, raw in ipairs(fetch(KEY.pool, unknown)) do
      if record.whole(raw) then know(unknown[i], raw, RECORD) end
    end
  end

  local function publish(first, last)
    local names, of_lane, parts, n, format = {}, {}, {}, 0, FORMAT
    for i = first, last do
      if tags[locs[i]] then format = WITH_TAGS end
    end
    for i = first, last do
      local id, lane = ids[locs[i]], lane_ids[i]
      if of_lane[lane] == nil then
        local name = lanes.name(lane)
        local topic = name and lanes.topic(name)
        of_lane[lane] = topic and pack('>I2', #names) or false
        if topic then names[#names + 1] = char(#topic) .. topic end
      end
      -- An event of a job whose id or topic is not known is skipped.
      if id and of_lane[lane] and happened[i] then
        parts[n + 1], parts[n + 2], parts[n + 3] = of_lane[lane], id, ''
        if format == WITH_TAGS then
          local found = tags[locs[i]] or ''
          parts[n + 3] = pack('>I2', #found) .. found
        end
        parts[n + 4] = happened[i]
        n = n + 4
      end
    end
    if n == 0 then return end
    -- If the user may not publish to this channel, the transition must not fail.
    redis.pcall('PUBLISH', KEY.events, pack('>BI6I2', format, NOW, #names) .. concat(names) .. concat(parts))
  end

  function events.close()
    if not events.is_watched or #locs == n_published then return end
    events.know()
    shard.load_rows(lane_ids)
    for first = n_published + 1, #locs, MOST do publish(first, min(first + MOST - 1, #locs)) end
    n_published = #locs
  end

  -- Returns this call's transitions (name, states, topic, id, reason) of jobs whose id and topic are known.
  function events.logged()
    local all = {}
    if not events.on then return all end
    events.know()
    shard.load_rows(lane_ids)
    for i, one in ipairs(taken) do
      local id, name = ids[locs[i]], lanes.name(lane_ids[i])
      if one and id and name then all[#all + 1] = {one[1], one[2], one[3], lanes.topic(name), sub(id, 2), one[4]} end
    end
    return all
  end
end
