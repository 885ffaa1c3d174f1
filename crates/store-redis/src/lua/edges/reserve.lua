-- reserve: ready -> reserved, for push. Lanes take turns. A lane that is full for the caller is skipped;
--   a lane of a paused topic is parked.
-- KEYS  shard
-- ARGV  caller, sequence (8 bytes), limit (jobs), limit per lane, receipt bits (8 bytes), lease margin
--   (ms), default timeout (ms), longest lease without the margin (ms), byte budget, then id and limit of
--   each lane with a limit of its own
-- Returns what grants.lua says; skipped are lanes that have more jobs than their limit
function grants.reserve(args, n_args)
  local limit, lane_limit, margin = tonumber(args[3]), tonumber(args[4]), tonumber(args[6])
  local default, longest = tonumber(args[7]), tonumber(args[8])
  local function length(timeout) return min(timeout == 0 and default or timeout, longest) + margin end
  local grant, answer = grants.begin(args[1], args[2], limit, args[5], tonumber(args[9]), length)
  if not grant then return answer end

  local own_limits = {}
  for i = 10, n_args, 2 do own_limits[args[i]] = tonumber(args[i + 1]) end
  local window = 64 + (n_args - 9) / 2
  local all = ready.lanes(window)
  shard.load_rows(all)
  local open, paused = topics.split(all)
  local n_open = 0
  for _, lane in ipairs(open) do if own_limits[lane] ~= 0 then n_open = n_open + 1 end end
  local share = ceil(limit / max(n_open, 1))

  -- Entries stay in their queues until everything is written.
  local visits, skipped, more = {}, {}, #all == window and grants.MORE or 0
  for _, lane in ipairs(open) do
    local bound = own_limits[lane] or lane_limit
    local most = min(bound, share, grant.left)
    if bound == 0 then
      skipped[#skipped + 1] = lanes.name(lane)
    elseif most == 0 or grant.budget <= 0 then
      more = grants.MORE
      break
    else
      local entries = ready.range(lane, 0, most + 1)
      local n, taken = grants.take(grant, lane, entries, min(#entries, most))
      -- A lane without a name has nothing more to give.
      if n < #entries and lanes.name(lane) then
        if bound > n then more = grants.MORE else skipped[#skipped + 1] = lanes.name(lane) end
      end
      visits[#visits + 1] = {lane, n, n == #entries, taken}
    end
  end

  grants.save(grant)
  topics.park(paused, KEY.lanes)
  for i, visit in ipairs(visits) do
    if visit[4] > 0 then lanes.move(visit[1], READY, RESERVED, visit[4]) end
    ready.pop(visit[1], visit[2], visit[3], i)
  end
  return grants.answer(grant, more, skipped)
end

function edges.reserve(args)
  shard.begin(grants.FIELDS)
  local answer = grants.reserve(args, #args)
  shard.close()
  return answer
end
