-- Arrivals: adds the new jobs of submit, replace, import and firings of schedules, or refuses them.
-- Uses archive, due_index, events, lanes, order, ready, records, shard, tag_index, tombs, topics.
local arrivals = {}
do
  -- Records to be written; locators, records and payloads of jobs whose former payload has the same key; the names of
  -- lanes in the arguments, the fields of their topics, and the limits of their tenants; and how many accepted jobs the caller knows of.
  local new, payloads, lane_names, topic_fields, tenant_limits, known_accepted

  function arrivals.start() new, payloads, lane_names, topic_fields, tenant_limits, known_accepted = {}, {}, nil, nil, nil, nil end

  -- Reads the first argument: how many accepted jobs of the shard the caller knows of, and how many lanes follow.
  function arrivals.numbers(args) return read('<dd', args[1]) end

  -- Reads the first arguments: the numbers, and of each lane two: its id, behind which are the numbers of topics and lanes
  -- that its tenant may have (4 bytes each), unless that has no limits; and its name.
  -- Returns the names of the rows of these lanes and their topics, and the index of the argument after them.
  function arrivals.lanes(args)
    local names, n = {}, nil
    known_accepted, n = arrivals.numbers(args)
    lane_names, topic_fields, tenant_limits = {}, {}, {}
    for i = 2, 2 * n, 2 do
      local lane, name = sub(args[i], 1, 8), args[i + 1]
      local field = topics.field(lanes.topic(name))
      lane_names[lane], topic_fields[lane], tenant_limits[lane] = name, field, sub(args[i], 9)
      names[i - 1], names[i] = lane, field
    end
    return names, 2 * n + 2
  end

  -- Returns the answer if no job may be added: 'lost' if the caller knows of more accepted jobs than the shard, which
  -- has then lost some, or 'archive' while the archive outbox is full. False if jobs may be added; then makes due jobs
  -- ready, which go before them in ordered topics. The fields must have been read.
  function arrivals.check_accepts_jobs()
    if fields.accepted < known_accepted then return {'lost', fields.accepted} end
    if archive.is_full() then return {'archive', fields.accepted} end
    order.promote_due()
    return false
  end

  -- Appends how many jobs the shard has accepted to the answers about the jobs, and returns them.
  function arrivals.answered(answers)
    answers[#answers + 1] = fields.accepted
    return answers
  end

  -- Reads the records of jobs, and the tombstones of jobs without a record. Most jobs are new and have neither.
  function arrivals.look_up(locs)
    local known, absent = {}, {}
    local raws = fetch(KEY.pool, locs)
    for i = 1, #locs do
      local list = raws[i] and known or absent
      list[#list + 1] = locs[i]
    end
    jobs.load(known)
    for _, loc in ipairs(known) do
      if not records[loc] then absent[#absent + 1] = loc end
    end
    tombs.load(absent)
  end

  -- Whether any of these jobs has a record or a tombstone.
  function arrivals.is_any_known(locs) return has_any(KEY.pool, locs) or tombs.is_any_known(locs) end

  -- Begins a call whose jobs have six arguments each, and reads the jobs that have their keys. Returns the locators, none
  -- if no job may be added, and the index of the first job's arguments.
  function arrivals.begin(args)
    local names, from = arrivals.lanes(args)
    shard.begin(names)
    local locs = {}
    if arrivals.check_accepts_jobs() then return locs, from end
    for i = from, #args, 6 do locs[#locs + 1] = args[i] end
    arrivals.look_up(locs)
    return locs, from
  end

  -- Reads a due time in an argument: "+ms" from now, or absolute ms. Returns it in ms, at least NOW.
  function arrivals.due_time(text)
    local at = tonumber(text)
    if byte(text) ~= 43 then return max(at, NOW) end
    return at > 0 and NOW_UP + at or NOW
  end

  -- Returns a group for new jobs with one lane and one due time. `code` is given if they are neither delayed nor ready,
  -- and `created` (ms) if that is not now.
  function arrivals.group(lane, at, code, created)
    code, created = code or at <= NOW and READY or DELAYED, created or NOW
    if code == READY and order.is_used() then
      at = order.due_at_once(lane)
      created = max(created, at)
    end
    local times = pack('>I6I6', at, created)
    return {lane = lane, at = at, times = times, due = sub(times, 1, 6), entries = {}, code = code, count = 0}
  end

  -- Returns the answer to a job whose key is taken: 200 if the content is the same, else 409, with the known job.
  function arrivals.taken(loc, rest)
    local raw, tomb, hash = records[loc], tombstones[loc], sub(rest, 6, 13)
    if not raw then return {tombs.hash(tomb) == hash and 200 or 409, tomb} end
    local status = record.hash(raw) == hash and 200 or 409
    return jobs.described(status, due_index.code(loc, raw, states[loc]), raw, states[loc])
  end

  -- Returns the name of a lane in the arguments.
  function arrivals.lane_name(lane) return lane_names and lane_names[lane] end

  -- Returns the answer to a job whose lane or topic would exceed a limit; false if there is room.
  function arrivals.refuse_lane(lane) return topics.refuse(lane, lane_names[lane], tenant_limits[lane]) end

  -- Returns the answer to a job that cannot be added, because its key is taken or there are too many lanes or topics;
  -- false if it can be added. `rest` is its record after the times.
  function arrivals.refusal(group, loc, rest)
    if records[loc] or tombstones[loc] then return arrivals.taken(loc, rest) end
    if group.refusal == nil then group.refusal = arrivals.refuse_lane(group.lane) end
    if not group.refusal and group.code == READY and order.is_used() and order.is_full(group.lane, group.times .. rest) then
      return {429, 'keys'}
    end
    return group.refusal
  end

  -- Adds a job to a group, and publishes the event. `rest` is its record after the times, `external` a large payload or
  -- '', and `former` the record of the job whose place it takes, if there is one. `close` and `save` must follow. Returns
  -- the record.
  function arrivals.add(group, loc, rest, external, former)
    local size = group.count + 1
    group.count = size
    group.entries[size] = loc .. group.due
    if order.is_used() then rest = order.numbered(group.lane, rest) end
    local raw = group.times .. rest
    if order.is_used() then records[loc], states[loc] = raw, states[loc] or false end
    if external ~= '' and former and record.is_external(former) then
      payloads[#payloads + 1] = {loc, raw, external}
    else
      local n = #new
      new[n + 1], new[n + 2] = loc, raw
      if external ~= '' then call('SET', KEY.body .. loc, external) end
    end
    if byte(rest) >= TAGGED then tag_index.enter(loc, lane_names[group.lane], rest) end
    events.submitted(loc, group.lane, group.due, rest, group.code)
    return raw
  end

  -- Indexes and counts the jobs of a group, after all of them were added.
  function arrivals.close(group)
    local n, lane = group.count, group.lane
    if n == 0 then return end
    if group.code == READY then
      ready.add_all(lane, group.entries)
    elseif group.code == DELAYED then
      due_index.add_all(lane, group.at, group.entries)
    end
    shard.count('accepted', n)
    lanes.move(lane, nil, group.code, n)
  end

  -- Overwrites a record and its payload with new ones. In between the new record contains the payload, so that the job
  -- stays readable, as it was or as it is, if the server stops half-way.
  local function put_payload(loc, raw, external)
    local flags = char(byte(raw, 13) - EXTERNAL)
    local head = sub(raw, 1, 12) .. flags .. sub(raw, 14, record.payload_at(raw) - 1)
    call('HSET', KEY.pool, loc, head .. sub(external, 1, read('>I4', raw, #raw - 3)))
    call('SET', KEY.body .. loc, external)
    call('HSET', KEY.pool, loc, raw)
  end

  -- Writes the new jobs: indexes first, then records. Adds rows for the new lanes among those in the arguments. Reads
  -- that can fail come before the first write.
  function arrivals.save()
    if #new == 0 and #payloads == 0 then return end
    local unknown
    for lane in pairs(lanes.moved()) do
      local name = lane_names[lane]
      if name and not (rows[lane] and topics.is_of_this_hour(topic_fields[lane])) then
        unknown = unknown or {}
        unknown[lane] = name
      end
    end
    local save_lanes = unknown and topics.add_lanes(unknown)
    due_index.save()
    ready.save('RPUSH')
    tag_index.save_added()
    if save_lanes then save_lanes() end
    sliced('HSET', KEY.pool, new)
    shard.commit()
    for _, payload in ipairs(payloads) do put_payload(unpack(payload)) end
  end
end
