-- Records that go: first what was submitted, then the head that says where the job stands.
local drops, unlinks = {}, {}
local function drop(loc, h)
  if has(h, EXTERNAL) then unlinks[#unlinks + 1] = K .. ':body:' .. loc end
  drops[#drops + 1] = loc
  heads[loc], records[loc] = false, false
end
local function save_drops()
  sliced('HDEL', POOL, drops)
  sliced('HDEL', HEADS, drops)
  for _, key in ipairs(unlinks) do call('UNLINK', key) end
end
