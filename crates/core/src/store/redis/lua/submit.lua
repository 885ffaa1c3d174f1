#!lua
-- submit: nothing -> delayed, or ready when already due.
-- KEYS  shard
-- ARGV  per job: locator, due ("+ms" from now, or absolute ms), timeout (4 bytes), content
--   hash (8 bytes), the rest of the record, external payload or ''
-- Returns per job: {201, head} new; {200, head} the same content again; {409, head}
--   other content; {200 or 409, tombstone, 1} once the job has ended.
open('next', 'accepted', 'delayed', 'ready', 'segment')
local locs, answers = {}, {}
for i = 1, #ARGV, 6 do locs[#locs + 1] = ARGV[i] end
look_up(locs)

local function accept(loc, at, timeout, hash, rest, external)
  local h = new_head(at <= NOW and READY or DELAYED, at, timeout, hash, external)
  arrive(loc, h, rest, external)
  return {201, h}
end

for i, loc in ipairs(locs) do
  local at, timeout, hash, rest, external = unpack(ARGV, 6 * i - 4, 6 * i)
  answers[i] = taken(loc, hash) or accept(loc, due_time(at), timeout, hash, rest, external)
end

save_arrivals()
close()
return answers
