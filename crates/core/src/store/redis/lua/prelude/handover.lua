-- A job that is handed over.
local function timeout(h) return (read('>I4', h, 3)) end

-- Its head: one more attempt, under a new lease. `stamp` is receipt and deadline, packed.
local function with_lease(h, stamp)
  local run = #h > HEAD and h or h .. NO_RUN
  local attempts = read('>I4', run, 27) + 1
  return char(RESERVED) .. sub(h, 2, HEAD) .. pack('>I4', attempts) .. sub(run, 31, 35) .. stamp .. sub(run, 58)
end

-- A score as text, made once for many equal ones.
local last_number, last_text
local function score(number)
  if number ~= last_number then last_number, last_text = number, string.format('%.0f', number) end
  return last_text
end

-- The bytes that it takes; a large payload's size stands in its place.
local function weight(loc)
  local raw = records[loc]
  if not has(heads[loc], EXTERNAL) then return #raw end
  return #raw + read('>I4', raw, #raw - 3)
end
