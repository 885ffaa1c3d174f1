-- Paused destinations: hosts, or single ports of them, that get no callbacks. And limited destinations and topics, whose
-- callbacks only a notifier with places makes (installation/admission.lua).
--
-- `destinations` is a hash: the name of each pause, and its state, PAUSED or RESUMING. A name is `host` or `host:port`,
-- for the jobs of all; with `~tenant/` before it, for the jobs of a tenant, with `~/`, for the jobs without one. All
-- shards have the same pauses. The field `paused_hosts` of the shard's hash is their number, so that nothing else is
-- read while there are none. `limited` is a hash of limits by the same names, `#topic`, or `^` and the name for
-- a breaker: LIMITED, or ENDING while lanes get turns again. The field `limits` is their number.
-- Uses lanes, shard, topics.
destinations.PAUSED, destinations.RESUMING = '1', '2'
destinations.LIMITED, destinations.ENDING = '1', '2'
do
  -- The states of pauses and the marks of limits by name, false for none; and the names of possible pauses and limits
  -- by the lane's name.
  local stored, limited, names_of

  function destinations.start() stored, limited, names_of = {}, {}, {} end

  -- Returns the names of all pauses and limits that a lane with this name could have; none for a pull lane.
  local function names(name)
    local all = names_of[name]
    if all then return all end
    all = {}
    local host, port = lanes.destination(name)
    if host then
      local with_port, of_tenant = host .. ':' .. port, lanes.tenant(name) .. '/'
      local own = of_tenant .. with_port
      all = {host, with_port, of_tenant .. host, own, '#' .. lanes.topic(name), '^' .. own}
    end
    names_of[name] = all
    return all
  end
  destinations.names = names

  -- Reads the values that a hash has under the names of lanes into `known`.
  local function read_into(known, key, lane_names)
    local absent = {}
    for _, name in ipairs(lane_names) do
      for _, listed in ipairs(names(name)) do
        if known[listed] == nil then
          known[listed] = false
          absent[#absent + 1] = listed
        end
      end
    end
    for i, value in ipairs(fetch(key, absent)) do known[absent[i]] = value end
  end

  -- Reads the pauses and the limits that lanes with these names could have, if there are any of a kind.
  function destinations.load(lane_names)
    if fields.paused_hosts > 0 then read_into(stored, KEY.destinations, lane_names) end
    if fields.limits > 0 then read_into(limited, KEY.limited, lane_names) end
  end

  -- Returns the names of the limits of a lane with this name. `load` must have read them.
  function destinations.limits(name)
    local found = {}
    if fields.limits == 0 then return found end
    for _, limit in ipairs(names(name)) do
      if limited[limit] == destinations.LIMITED then found[#found + 1] = limit end
    end
    return found
  end
  function destinations.is_limited(name) return #destinations.limits(name) > 0 end

  -- Stores the mark of a limit; nil removes it.
  function destinations.mark(limit, mark)
    if mark then call('HSET', KEY.limited, limit, mark) else call('HDEL', KEY.limited, limit) end
    limited[limit] = mark or false
    shard.set('limits', destinations.n_limits())
  end
  function destinations.n_limits() return call('HLEN', KEY.limited) end

  -- Returns the name of a pause in force, other than `ended`, that holds a lane with this name; nil if there is none.
  -- `load` must have read the lane's pauses.
  function destinations.holder(name, ended)
    for _, pause in ipairs(names(name)) do
      if stored[pause] == destinations.PAUSED and pause ~= ended then return pause end
    end
  end

  -- Returns the names of the pauses that may have set aside a lane with this name, those that are resuming included.
  function destinations.pauses(name)
    local found = {}
    read_into(stored, KEY.destinations, {name})
    for _, pause in ipairs(names(name)) do if stored[pause] then found[#found + 1] = pause end end
    return found
  end

  -- Returns the state of a pause; false if there is none.
  function destinations.state(pause)
    if stored[pause] == nil then stored[pause] = call('HGET', KEY.destinations, pause) end
    return stored[pause]
  end

  -- Returns which bound one more name in a hash would exceed: 0 that of all, 2 that of the tenant whose names begin with
  -- `prefix`, which is '' without a tenant. Nil if there is room.
  function destinations.limit(key, prefix, most, most_of_tenant)
    local all, own = call('HKEYS', key), 0
    if #all >= most then return 0 end
    if prefix == '' then return nil end
    for _, name in ipairs(all) do if sub(name, 1, #prefix) == prefix then own = own + 1 end end
    if topics.is_beyond(own, most_of_tenant, #all, most) then return 2 end
  end

  -- Stores the state of a pause; nil removes the pause. Counts the pauses.
  function destinations.set(pause, state)
    if state then
      call('HSET', KEY.destinations, pause, state)
    else
      call('HDEL', KEY.destinations, pause)
    end
    stored[pause] = state or false
    shard.set('paused_hosts', destinations.count())
    shard.count('pauses', 1)
  end

  -- Returns how many pauses of destinations there are, also those that are being resumed.
  function destinations.count() return call('HLEN', KEY.destinations) end
end
