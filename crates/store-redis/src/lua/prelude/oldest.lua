-- The oldest ready job, looked for at the heads of ready queues. A queue is nearly in order, and has entries
-- that no longer count, so its first few entries are looked at; more of them only while none counts.
local oldest = {FEW = 8, MANY = 100}
-- How many entries a call compares with their jobs. A call stops looking after about that many.
local MOST_COMPARED = 1000
local compared

function oldest.start() compared = 0 end

-- Whether a call has looked at enough.
function oldest.is_tired() return compared >= MOST_COMPARED end

-- When the first of these entries was due that counts; nil if none does.
local function first_of(entries, lane)
  compared = compared + #entries
  local first
  for _, entry in ipairs(ready.counting(lane, entries)) do
    local at = read('>I6', entry, 13)
    if not first or at < first then first = at end
  end
  return first
end

-- When the first ready job of a lane was due, if that is before `bound` (ms); nil otherwise.
function oldest.of(lane, bound)
  local from, to = 0, oldest.FEW - 1
  while true do
    local entries, before = ready.range(lane, from, to - from + 1), {}
    for _, entry in ipairs(entries) do
      if read('>I6', entry, 13) < bound then before[#before + 1] = entry end
    end
    local first = #before > 0 and first_of(before, lane)
    if first then return first end
    -- An entry that is due later than the bound may well count, so nothing is looked for behind it.
    if #before < #entries or #entries <= to - from or to + 1 >= oldest.MANY or oldest.is_tired() then return nil end
    from, to = to + 1, oldest.MANY - 1
  end
end
