-- page: reads on through the jobs that have not ended. No edge; changes nothing.
-- KEYS  shard
-- ARGV  where to read on ('0' is the start), the server's life that this belongs to, how many
--   jobs to look at, how many at a time, state or 0, topic or '', 1 when payloads are wanted,
--   byte budget
-- Returns {life, where to go on ('0' is the end), {locator, state, run or '', lane in words,
--   record}, ...}, the record without its payload unless that is wanted; or {life} when it is
--   another one
local PAGE = {'slot'}

function edges.page(args)
  begin(PAGE)
  local at, left, step, wanted = args[1], tonumber(args[3]), tonumber(args[4]), tonumber(args[5])
  local topic, whole, budget = args[6], args[7] == '1', tonumber(args[8])

  -- Where a job stands in a hash is known to one life of a server only.
  local life = sub(string.match(call('INFO', 'server'), 'run_id:(%x+)') or '', 1, 8)
  if at ~= '0' and args[2] ~= life then return {life} end

  local answer = {life, at}
  local function give(loc, raw)
    local words = lane_words(lane_of(raw))
    if not words or topic ~= '' and topic_in(words) ~= topic then return end
    local st = state_of(loc, raw, runs[loc])
    if wanted > 0 and st ~= wanted then return end
    local shown = whole and raw or sub(raw, 1, RECORD + byte(raw, RECORD))
    answer[#answer + 1] = {loc, st, runs[loc] or '', words, shown}
    -- What lies in a key of its own is read afterwards, and counts here.
    if whole and is_external(raw) then budget = budget - read('>I4', raw, #raw - 3) end
  end

  -- By a few at a time, so that it ends near the budget: what a scan has passed is not met again.
  for _ = 1, ceil(left / step) do
    local scanned = call('HSCAN', KEY.pool, at, 'COUNT', step)
    at = scanned[1]
    local locs, lanes, found = {}, {}, scanned[2]
    for i = 1, #found, 2 do
      local raw = record(found[i + 1])
      budget = budget - #found[i + 1]
      if raw then
        locs[#locs + 1] = found[i]
        lanes[#lanes + 1] = lane_of(raw)
        records[found[i]] = raw
      end
    end
    rows_load(lanes)
    for i, own in ipairs(fetch(KEY.runs, locs)) do
      local loc = locs[i]
      runs[loc] = run(own)
      if not own or runs[loc] then give(loc, records[loc]) end
    end
    left = left - #found / 2
    if at == '0' or left <= 0 or budget <= 0 then break end
  end
  answer[2] = at
  return answer
end
