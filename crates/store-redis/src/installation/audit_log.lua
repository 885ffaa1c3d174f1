-- The audit log: adds, reads and removes entries. Each owner has a sorted set of its entries, which are id and text, so
-- that they are in the order of their ids. An index has the ids of all entries, each followed by its owner. `weights`
-- has the weight of the entries of each owner, and `weight` that of all.
local ID_BYTES = 26
local function of_owner(owner) return K .. ':audit-log:' .. owner end
local function index() return K .. ':audit-log' end
local function weights() return K .. ':audit-log-weights' end
local function weight() return K .. ':audit-log-weight' end

-- Removes the oldest entry of the owner whose entries weigh most. Returns the weight that was removed, for an entry at
-- least `least`; nil if no owner has a weight.
local function remove_oldest(least)
  local heaviest = call('ZREVRANGE', weights(), 0, 0, 'WITHSCORES')
  local owner = heaviest[1]
  if not owner then return nil end
  local oldest = call('ZRANGE', of_owner(owner), 0, 0)[1]
  if not oldest then
    -- An earlier call has failed half-way.
    call('ZREM', weights(), owner)
    return tonumber(heaviest[2])
  end
  local freed = max(least, #owner + #oldest)
  call('ZREM', index(), sub(oldest, 1, ID_BYTES) .. owner)
  if freed >= tonumber(heaviest[2]) then
    call('ZREM', weights(), owner)
  else
    call('ZINCRBY', weights(), -freed, owner)
  end
  call('ZREM', of_owner(owner), oldest)
  return freed
end

-- append_audit_log: adds entries, and removes the oldest ones if all weigh too much. One that is there already is not
-- added again. Allowed when memory is full, because the log is bounded.
-- KEYS  installation
-- ARGV  how much all may weigh, what one weighs at least; then for each entry: owner, id, text
-- Returns how many were added
function scripts.append_audit_log(args)
  local most, least = tonumber(args[1]), tonumber(args[2])
  local total, new = tonumber(call('GET', weight()) or 0), {}
  call('EXISTS', index(), weights())
  for i = 3, #args, 3 do
    local owner, id = args[i], args[i + 1]
    local known = call('ZRANGE', of_owner(owner), '[' .. id, '(' .. id .. '\255', 'BYLEX')
    if #known == 0 then new[#new + 1] = i end
  end
  for _, i in ipairs(new) do
    local owner, id, text = args[i], args[i + 1], args[i + 2]
    local entry = id .. text
    local weighs = max(least, #owner + #entry)
    call('ZINCRBY', weights(), weighs, owner)
    call('ZADD', of_owner(owner), 0, entry)
    call('ZADD', index(), 0, id .. owner)
    total = total + weighs
  end
  while total > most do
    local freed = remove_oldest(least)
    if not freed then break end
    total = total - freed
  end
  if #new > 0 then call('SET', weight(), string.format('%.0f', max(0, total))) end
  return #new
end

-- read_audit_log: the newest entries before an id.
-- KEYS  installation
-- ARGV  owner; 1 for the entries of all owners, else 0; id or ''; how many
-- Returns {owner, id and text, ...}
function scripts.read_audit_log(args)
  local owner, newest = args[1], args[3] == '' and '+' or '(' .. args[3]
  local answer = {}
  local function newest_of(key) return call('ZRANGE', key, newest, '-', 'BYLEX', 'REV', 'LIMIT', 0, args[4]) end
  if args[2] == '0' then
    for _, entry in ipairs(newest_of(of_owner(owner))) do
      answer[#answer + 1], answer[#answer + 2] = owner, entry
    end
    return answer
  end
  for _, place in ipairs(newest_of(index())) do
    local id, of = sub(place, 1, ID_BYTES), sub(place, ID_BYTES + 1)
    local entry = call('ZRANGE', of_owner(of), '[' .. id, '(' .. id .. '\255', 'BYLEX', 'LIMIT', 0, 1)[1]
    -- If the entry is missing among those of its owner, the answer has only its id.
    answer[#answer + 1], answer[#answer + 2] = of, entry or id
  end
  return answer
end
