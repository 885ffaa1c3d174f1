-- check_lanes: checks a page of lanes and topics: their rows, missing links to their jobs, and whether lists
--   of topics show them.
-- KEYS  shard
-- ARGV  the arguments of a scan
-- Returns {run, where to go on ('0' is the end), {{{lane, its row}, ...}, {{lane, lane name}, ...} with
--   missing links, {{topic, its row}, ...}, {{tenant, its row}, ...}, {member of `index` that is missing, ...}}};
--   {run} if the scan began in another run
-- Uses check, lanes, shard, topics.
function scripts.check_lanes(args)
  shard.begin()
  local run, at, found = check.scan('HSCAN', KEY.shard, unpack(args))
  if not at then return {run} end
  local ids, lane_rows, unlinked, topic_rows, tenant_rows, unlisted = {}, {}, {}, {}, {}, {}
  local function check_lists(name)
    local member = topics.unlisted(name)
    if member then unlisted[#unlisted + 1] = member end
  end
  for i = 1, #found, 2 do
    local name, row = found[i], found[i + 1]
    local topic, tenant = topics.of_entry(name, row), topics.tenant_of_entry(name, row)
    rows[name] = row
    if topic then
      topic_rows[#topic_rows + 1] = {topic, row}
      check_lists(name)
    elseif tenant then
      tenant_rows[#tenant_rows + 1] = {tenant, row}
    elseif check.is_lane(name, row) then
      ids[#ids + 1] = name
      lane_rows[#lane_rows + 1] = {name, row}
      check_lists(name)
    end
  end
  check.load_lanes(ids)
  for _, lane in ipairs(ids) do
    if next(check.missing_links(lane)) then unlinked[#unlinked + 1] = {lane, lanes.name(lane)} end
  end
  return {run, at, {lane_rows, unlinked, topic_rows, tenant_rows, unlisted}}
end
