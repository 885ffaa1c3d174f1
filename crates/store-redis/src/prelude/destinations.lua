-- Paused destinations: hosts, or single ports of them, that get no callbacks.
--
-- `destinations` is a hash: the name of each pause, and its state, PAUSED or RESUMING. A name is `host` or `host:port`,
-- for the jobs of all; with `~tenant/` before it, for the jobs of a tenant, with `~/`, for the jobs without one. All
-- shards have the same pauses. The field `paused_hosts` of the shard's hash is their number, so that nothing else is
-- read while there are none.
-- Uses lanes, shard, topics.
destinations.PAUSED, destinations.RESUMING = '1', '2'
do
  -- The states of pauses by name, false for none; and the names of possible pauses by the lane's name.
  local stored, names_of

  function destinations.start() stored, names_of = {}, {} end

  -- Returns the names of all pauses that could hold a lane with this name; none for a pull lane.
  local function names(name)
    local all = names_of[name]
    if all then return all end
    all = {}
    local host, port = lanes.destination(name)
    if host then
      local with_port, of_tenant = host .. ':' .. port, lanes.tenant(name) .. '/'
      all = {host, with_port, of_tenant .. host, of_tenant .. with_port}
    end
    names_of[name] = all
    return all
  end

  -- Reads the states of the pauses that could hold lanes with these names.
  function destinations.load(lane_names)
    local absent = {}
    for _, name in ipairs(lane_names) do
      for _, pause in ipairs(names(name)) do
        if stored[pause] == nil then
          stored[pause] = false
          absent[#absent + 1] = pause
        end
      end
    end
    for i, state in ipairs(fetch(KEY.destinations, absent)) do stored[absent[i]] = state end
  end

  -- Returns the name of a pause in force, other than `ended`, that holds a lane with this name; nil if there is none.
  -- `load` must have read the lane's pauses.
  function destinations.holder(name, ended)
    for _, pause in ipairs(names(name)) do
      if stored[pause] == destinations.PAUSED and pause ~= ended then return pause end
    end
  end

  -- Returns the names of the pauses that may have set aside a lane with this name, those that are resuming included.
  function destinations.pauses(name)
    destinations.load({name})
    local found = {}
    for _, pause in ipairs(names(name)) do if stored[pause] then found[#found + 1] = pause end end
    return found
  end

  -- Returns the state of a pause; false if there is none.
  function destinations.state(pause)
    if stored[pause] == nil then stored[pause] = call('HGET', KEY.destinations, pause) end
    return stored[pause]
  end

  -- Returns which limit one more pause would exceed: 0 the limit of all, 2 that of the tenant whose names begin with
  -- `prefix`, which is '' without a tenant. Nil if there is room.
  function destinations.limit(prefix, most, most_of_tenant)
    local all, own = call('HKEYS', KEY.destinations), 0
    if #all >= most then return 0 end
    if prefix == '' then return nil end
    for _, pause in ipairs(all) do if sub(pause, 1, #prefix) == prefix then own = own + 1 end end
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
