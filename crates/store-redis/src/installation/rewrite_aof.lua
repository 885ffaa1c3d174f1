-- The servers that were asked to rewrite their append-only files, by their run ids, which change with every start.
-- `rewrite_aof.rs` asks them.
local function servers() return K .. ':servers' end

-- note_servers: adds servers to the set, and, if any was new, removes those that are not among the arguments.
-- KEYS  installation
-- ARGV  run ids
-- Returns the run ids that were not noted before
function scripts.note_servers(args)
  tick()
  local new, is_there = {}, {}
  for i, is_known in ipairs(call('SMISMEMBER', servers(), unpack(args))) do
    is_there[args[i]] = true
    if is_known == 0 then new[#new + 1] = args[i] end
  end
  if #new == 0 then return new end
  for _, id in ipairs(call('SMEMBERS', servers())) do
    if not is_there[id] then call('SREM', servers(), id) end
  end
  call('SADD', servers(), unpack(new))
  -- A second write, so that Redis appends a whole transaction. It ends one that the end of the file may have left
  -- open. Redis refuses to load a file with an open transaction if it is not the last one, which it no longer is once
  -- the rewrite has begun.
  call('HSET', K .. ':install', 'started', string.format('%.0f', NOW))
  return new
end

-- drop_server: removes a server from the set, so that the next process that adds it asks it again.
-- KEYS  installation
-- ARGV  run id
-- Returns 1 if it was noted, else 0
function scripts.drop_server(args) return call('SREM', servers(), args[1]) end
