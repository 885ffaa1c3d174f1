-- audit_lanes: looks at a page of lanes and topics: what each is said to have, whether what it has is
--   led to, and whether it is listed. No edge; changes nothing.
-- KEYS  shard
-- ARGV  where to read on ('0' is the start), the server's life that this belongs to, about how many
-- Returns {life, where to go on ('0' is the end), {lane, its row, ...}, {lane, lane in words, ...} of
--   those without their turn, {topic, its row, ...}, {member of `index`, ...} of what is not listed};
--   {life} when it is another one
function edges.audit_lanes(args)
  begin({'slot'})
  local life = audits.life()
  if args[1] ~= '0' and args[2] ~= life then return {life} end
  local scanned = call('HSCAN', KEY.shard, args[1], 'COUNT', args[3])
  local lanes, told, lost, known, unlisted = {}, {}, {}, {}, {}
  local function list(name)
    local member = topics.unlisted(name)
    if member then unlisted[#unlisted + 1] = member end
  end
  for i = 1, #scanned[2], 2 do
    local name, row = scanned[2][i], scanned[2][i + 1]
    local topic = audits.topic_of(name, row)
    rows[name] = row
    if topic then
      known[#known + 1], known[#known + 2] = topic, row
      list(name)
    elseif audits.is_lane(name, row) then
      lanes[#lanes + 1] = name
      told[#told + 1], told[#told + 2] = name, row
      list(name)
    end
  end
  audits.load_lanes(lanes)
  for _, lane in ipairs(lanes) do
    if next(audits.lacks(lane)) then lost[#lost + 1], lost[#lost + 2] = lane, lane_words(lane) end
  end
  return {life, scanned[1], told, lost, known, unlisted}
end
