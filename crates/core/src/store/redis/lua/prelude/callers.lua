-- What each caller was last given, for a minute: asked again with the same sequence, it
-- gets the same.
local function remember(caller, seq, bits, locs)
  call('SET', K .. ':caller:' .. caller, pack('>I8', seq) .. bits .. table.concat(locs), 'PX', 60000)
end
local function replayed(caller, seq)
  local raw = call('GET', K .. ':caller:' .. caller)
  if not raw or read('>I8', raw) ~= seq then return nil end
  local locs = {}
  for i = 17, #raw, 12 do locs[#locs + 1] = sub(raw, i, i + 11) end
  return locs, sub(raw, 9, 16)
end
