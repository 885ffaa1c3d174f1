-- The ledger: how many jobs are in each state, and how many ever were accepted or purged.
local STATE_NAMES = {'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled'}
local tally = {}
local function count(name, n) tally[name] = (tally[name] or 0) + n end
local function move(from, to)
  if from then count(STATE_NAMES[from], -1) end
  if to then count(STATE_NAMES[to], 1) end
end
local function write_tally()
  for name, n in pairs(tally) do
    if n ~= 0 then call('HINCRBY', K .. ':counters', name, n) end
  end
end
