-- Lateness of deliveries: a histogram per minute, each a hash.
local lateness = {}

function lateness.minute() return floor(NOW / 60000) end
function lateness.key(minute) return KEY.late .. minute end
