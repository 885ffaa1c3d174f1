-- The index of jobs by their tags. Ended jobs and jobs without tags are not in it.
--
-- `tags` is a sorted set whose scores are all 0. A job has a member for each of its tags: 12 hex digits of the SHA-1 of
-- tenant, space and tag, and then its locator. So the jobs of a tenant with a tag are a range. Two tags may share the
-- digits, and a member may remain after its job, so a reader checks the record too.
-- Uses lanes, records, shard.
do
  local PREFIX = 12
  -- Members with their scores, to be added; jobs to be removed, as locator, lane and tags; locators of further ones whose
  -- records were not read. Nil while there are none.
  local added, left, unread

  function tag_index.start() added, left, unread = nil, nil, nil end

  -- Returns the begin of the members of a tag. `tenant` is as lanes.tenant returns it.
  function tag_index.prefix(tenant, tag) return sub(redis.sha1hex(tenant .. ' ' .. tag), 1, PREFIX) end
  function tag_index.locator(member) return sub(member, PREFIX + 1) end

  -- Returns the members of a job, from the name of its lane and its tags.
  local function members(loc, name, tags)
    local list, tenant = {}, lanes.tenant(name)
    for tag in string.gmatch(tags, '[^ ]+') do list[#list + 1] = tag_index.prefix(tenant, tag) .. loc end
    return list
  end

  -- Returns the members of a job by its record; none if the row of its lane is missing. The row must have been read.
  function tag_index.members_of(loc, raw)
    local tags, name = record.tags(raw), lanes.name(record.lane(raw))
    return tags ~= '' and name and members(loc, name, tags) or {}
  end

  local function add(list)
    added = added or {}
    for _, member in ipairs(list) do
      added[#added + 1] = 0
      added[#added + 1] = member
    end
  end

  -- Collects the members of a new job. `name` is the name of its lane, `rest` its record after the times.
  function tag_index.enter(loc, name, rest)
    local tags = record.tags(rest, RECORD - 12)
    if tags ~= '' and name then add(members(loc, name, tags)) end
  end

  -- Collects the members of a known job to be added again. The row of its lane must have been read.
  function tag_index.relink(loc, raw) add(tag_index.members_of(loc, raw)) end

  -- Collects the removal of a job whose record was read.
  function tag_index.leave(loc, raw)
    local tags = record.tags(raw)
    if tags == '' then return end
    left = left or {}
    left[#left + 1] = {loc, record.lane(raw), tags}
  end

  -- Collects the removal of a job with tags whose record was not read; `know` reads it.
  function tag_index.leave_unread(loc)
    unread = unread or {}
    unread[#unread + 1] = loc
  end

  -- Reads the tags and the lanes' rows of the jobs to be removed. Must run before their records are removed.
  function tag_index.know()
    for i, raw in ipairs(unread and fetch(KEY.pool, unread) or {}) do
      if record.whole(raw) then tag_index.leave(unread[i], raw) end
    end
    if not left then return end
    local ids = {}
    for i, job in ipairs(left) do ids[i] = job[2] end
    shard.load_rows(ids)
  end

  -- Writes the members that were collected.
  function tag_index.save_added()
    if added then sliced('ZADD', KEY.tags, added) end
  end

  -- Removes the members of removed jobs, except those that this call adds again.
  function tag_index.save_removed()
    if not left then return end
    local stay, gone = {}, {}
    for i = 2, added and #added or 0, 2 do stay[added[i]] = true end
    for _, job in ipairs(left) do
      local name = lanes.name(job[2])
      for _, member in ipairs(name and members(job[1], name, job[3]) or {}) do
        if not stay[member] then gone[#gone + 1] = member end
      end
    end
    sliced('ZREM', KEY.tags, gone)
  end

  -- Whether the index has all members of a job.
  function tag_index.holds(loc, raw)
    for _, member in ipairs(tag_index.members_of(loc, raw)) do
      if not call('ZSCORE', KEY.tags, member) then return false end
    end
    return true
  end

  -- Returns the ends of the range with all members of a prefix, for commands on members in their order.
  local function range(prefix) return '[' .. prefix, '[' .. prefix .. string.rep('\255', 12) end

  -- Returns how many members a tag of a tenant has.
  function tag_index.count(tenant, tag) return call('ZLEXCOUNT', KEY.tags, range(tag_index.prefix(tenant, tag))) end

  -- Returns a page of up to `count` jobs with a tag after the place `at` ('0' is the start): their locators, and the place
  -- where the next page begins ('0' is the end). A place is the first 8 bytes of a locator.
  function tag_index.page(tenant, tag, at, count)
    local prefix = tag_index.prefix(tenant, tag)
    local first, last = range(prefix)
    if at ~= '0' then first = '(' .. prefix .. bytes_of(at) .. '\255\255\255\255' end
    local found = call('ZRANGEBYLEX', KEY.tags, first, last, 'LIMIT', 0, count)
    local locs = {}
    for i, member in ipairs(found) do locs[i] = tag_index.locator(member) end
    if #locs < count then return locs, '0' end
    return locs, place_of(locs[#locs])
  end
end
