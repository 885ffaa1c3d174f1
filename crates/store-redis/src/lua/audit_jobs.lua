-- audit_jobs: looks at a page of records, each with what finds it. No edge; changes nothing.
-- KEYS  shard
-- ARGV  where to read on ('0' is the start), the server's life that this belongs to, about how many
-- Returns {life, where to go on ('0' is the end), {delayed, ready, reserved, dead} as counted, jobs
--   that wait in ready queues, and in slots (locator, due, lane, attempts: 30 bytes each), {lane,
--   delayed, ready, reserved and dead (4 bytes each), ...}, {what is wrong, locator, state, lane in words, record's start} ...}; {life} when it
--   is another one
local PLACES = {[DELAYED] = 1, [READY] = 2, [RESERVED] = 3, [DEAD] = 4}

function edges.audit_jobs(args)
  audits.begin({'slot'})
  local life = audits.life()
  if args[1] ~= '0' and args[2] ~= life then return {life} end
  local scanned = call('HSCAN', KEY.pool, args[1], 'COUNT', args[3])
  local found, locs, lanes, per_lane, bad = scanned[2], {}, {}, {}, {}
  local counts, ready, slots = {0, 0, 0, 0}, {}, {}

  local function tell(what, loc, st, raw)
    local words = record(raw) and lane_words(lane_of(raw)) or ''
    local shown = record(raw) and sub(raw, 1, RECORD + byte(raw, RECORD)) or ''
    bad[#bad + 1] = {what, loc, st, words, shown}
  end

  for i = 1, #found, 2 do
    local loc, raw = found[i], found[i + 1]
    locs[#locs + 1], records[loc] = loc, raw
    if record(raw) then
      local lane = lane_of(raw)
      if not per_lane[lane] then lanes[#lanes + 1] = lane end
      per_lane[lane] = per_lane[lane] or {0, 0, 0, 0}
    end
  end
  rows_load(lanes)
  for i, r in ipairs(fetch(KEY.runs, locs)) do
    local loc = locs[i]
    local raw = records[loc]
    if #loc ~= 12 or not record(raw) or (r and not run(r)) then
      tell('unreadable', loc, 0, raw)
    else
      local st, is_there = audits.stand(loc, raw, r)
      local place, of_lane = PLACES[st], per_lane[lane_of(raw)]
      if place then counts[place], of_lane[place] = counts[place] + 1, of_lane[place] + 1 end
      if is_there == false then
        tell('unindexed', loc, st, raw)
      elseif is_there == nil then
        local list = st == READY and ready or slots
        list[#list + 1] = audits.waiting(loc, raw, r)
      end
      if not rows[lane_of(raw)] then tell('lane', loc, st, raw) end
      if is_external(raw) and call('EXISTS', KEY.body .. loc) == 0 then tell('body', loc, st, raw) end
    end
  end
  local flat = {}
  for lane, n in pairs(per_lane) do flat[#flat + 1], flat[#flat + 2] = lane, pack('>i4i4i4i4', unpack(n)) end
  return {life, scanned[1], counts, concat(ready), concat(slots), flat, bad}
end
