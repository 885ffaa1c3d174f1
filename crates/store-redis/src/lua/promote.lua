-- promote: delayed and due -> ready. Lanes take turns; none takes more than its share. A slot
-- whose time is near is put in order first.
-- KEYS  shard
-- ARGV  epoch, limit (jobs), floor (ms), retention (ms)
-- Returns {-1} fenced, or {promoted, 0, waits in us...}
local PROMOTE = {'epoch', 'next', 'delayed', 'ready', 'slot', 'lease_at', 'dead_at', 'tell_at'}
local MOST_LANES, PACE = 64, 10000

local function first_turns() return call('ZRANGE', KEY.turns, 0, MOST_LANES, 'WITHSCORES') end

-- Of these the lanes that are due by a time, in turn, and when the one behind them is.
local function due_lanes(scored, at)
  local lanes, following = {}, nil
  for i = 1, #scored, 2 do
    local score = tonumber(scored[i + 1])
    if score > at or #lanes == MOST_LANES then
      following = score
      break
    end
    lanes[#lanes + 1] = scored[i]
  end
  return lanes, following
end

function edges.promote(args)
  -- Before all else, so that the rows of lanes that are due are read with the shard's fields.
  tick()
  local turns = first_turns()
  begin(PROMOTE, (due_lanes(turns, NOW)))
  if is_fenced(args[1]) then return {-1} end
  local left, promoted = tonumber(args[2]), 0
  local is_near = shard.slot > 0 and shard.slot <= floor(NOW / WIDTH) + 1
  local is_more = cascade(left)
  if is_near then turns = first_turns() end
  -- What is due later than the start of a slot waits until that is in order.
  local bound = shard.slot > 0 and min(NOW, shard.slot * WIDTH - 1) or NOW

  local lanes, soon = due_lanes(turns, bound)
  local share = ceil(left / max(#lanes, 1))
  for _, lane in ipairs(lanes) do
    local take = min(share, left)
    if take == 0 then
      soon = NOW
      break
    end
    local entries, following = due_first(lane, take, bound)
    local n = #entries
    if n > 0 then
      ready_push(lane, entries, 'RPUSH')
      move(lane, DELAYED, READY, n)
      events.promoted_all(entries, lane)
    end
    due_pop(lane, n, following, bound)
    left, promoted = left - n, promoted + n
    if following and (not soon or following < soon) then soon = following end
  end

  wake_takers()
  local due_in = soon and until_ms(soon) or -1
  if shard.slot > 0 then
    -- A slot that is near is put in order at a pace that leaves the server to others, unless
    -- something of it is due.
    local slot = is_more and (shard.slot * WIDTH <= NOW and 0 or PACE) or until_ms((shard.slot - 1) * WIDTH)
    if due_in < 0 or slot < due_in or shard.slot * WIDTH <= NOW then due_in = slot end
  end
  local waits = rest(tonumber(args[3]), tonumber(args[4]), due_in)
  close()
  return {promoted, 0, unpack(waits)}
end
