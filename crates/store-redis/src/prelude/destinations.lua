-- Paused destinations: hosts, or single ports of them, that no callback is made to.
--
-- `destinations` is a hash: the name of each pause, and whether it is in force or ends. A name is `host` or
-- `host:port`, for the jobs of all; `~tenant/` before it makes it one for the jobs of a tenant, `~/` for those without
-- one. All shards have the same. The field `paused_hosts` of the shard's hash is how many there are, so that nothing
-- else is read while there is none.
-- Uses lanes, shard, topics.
destinations.PAUSED, destinations.RESUMING = '1', '2'
do
  -- What is stored under names, false for nothing; and the names of the pauses that hold lanes, by the lane's name.
  local stored, names_of

  function destinations.start() stored, names_of = {}, {} end

  -- The names of all pauses that hold a lane with this name, if they are there; none for a pull lane.
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

  -- Reads what is stored of the pauses of lanes with these names.
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

  -- The pause in force that holds a lane with this name, other than `ended`; nil if there is none. Must have been read.
  function destinations.holder(name, ended)
    for _, pause in ipairs(names(name)) do
      if stored[pause] == destinations.PAUSED and pause ~= ended then return pause end
    end
  end

  -- The pauses that may have set aside a lane with this name: those that end, too.
  function destinations.pauses(name)
    destinations.load({name})
    local found = {}
    for _, pause in ipairs(names(name)) do if stored[pause] then found[#found + 1] = pause end end
    return found
  end

  -- What is stored of a pause; false if there is none.
  function destinations.state(pause)
    if stored[pause] == nil then stored[pause] = call('HGET', KEY.destinations, pause) end
    return stored[pause]
  end

  -- Which limit one more pause exceeds: 0 that of all, 2 that of the tenant whose names begin with `prefix`, if that is
  -- not ''. Nil if there is room.
  function destinations.limit(prefix, most, most_of_tenant)
    local all, own = call('HKEYS', KEY.destinations), 0
    if #all >= most then return 0 end
    if prefix == '' then return nil end
    for _, pause in ipairs(all) do if sub(pause, 1, #prefix) == prefix then own = own + 1 end end
    if topics.is_beyond(own, most_of_tenant, #all, most) then return 2 end
  end

  -- Stores a state of a pause; nil removes it.
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

  -- How many pauses there are.
  function destinations.count() return call('HLEN', KEY.destinations) end
end
