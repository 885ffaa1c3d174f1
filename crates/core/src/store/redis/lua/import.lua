#!lua
-- import: nothing -> delayed, ready when already due, or dead; with what a job has behind it.
-- KEYS  shard
-- ARGV  per job: those of submit, then its history or '': 1 when it is dead (1 byte), when
--   it was created (6 bytes), attempts and failures (4 bytes each), and the last failed
--   attempt with the reason as a head keeps them
-- Returns what submit returns.
open('next', 'accepted', 'delayed', 'ready', 'dead', 'segment')
local locs, answers, dead = {}, {}, {}
for i = 1, #ARGV, 7 do locs[#locs + 1] = ARGV[i] end
look_up(locs)

local function due_of(text, is_dead)
  -- A dead job keeps the time that it was last due.
  if is_dead and byte(text) ~= 43 then return tonumber(text) end
  return due_time(text)
end

-- The head that counts. The one in the record goes on to tell when the job came here.
local function with_history(h, history)
  local created = math.min(read('>I6', history, 2), NOW)
  return sub(h, 1, 12) .. pack('>I6', created) .. sub(h, 19) .. sub(history, 8, 15)
    .. sub(NO_RUN, 9, 39) .. sub(history, 16)
end

local function accept(loc, text, timeout, hash, rest, external, history)
  local is_dead = byte(history) == 1
  local at = due_of(text, is_dead)
  local st = is_dead and DEAD or at <= NOW and READY or DELAYED
  local h = new_head(st, at, timeout, hash, external)
  arrive(loc, h, rest, external)
  if is_dead then dead[#dead + 1] = loc end
  if history ~= '' then put(loc, with_history(h, history)) end
  return {201, heads[loc]}
end

for i, loc in ipairs(locs) do
  local at, timeout, hash, rest, external, history = unpack(ARGV, 7 * i - 5, 7 * i)
  answers[i] = taken(loc, hash) or accept(loc, at, timeout, hash, rest, external, history)
end

dead_add(dead)
save_arrivals()
save()
close()
return answers
