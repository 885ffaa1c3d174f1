-- New jobs, whose heads lie in their records.

-- As `load`, for jobs that are most likely new: it looks for heads only where there are records.
local function load_if_known(locs)
  local known = {}
  for i, raw in ipairs(fetch(POOL, locs)) do
    if raw then known[#known + 1] = locs[i] end
  end
  load(known)
end

local function add(new) sliced('HSET', POOL, new) end
local function put_external(loc, payload) call('SET', K .. ':body:' .. loc, payload) end
