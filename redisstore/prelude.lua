-- Every number here is a whole number below 2^53, which a double holds exactly.
-- The quotient of two such numbers, rounded down or up, is exact as well.
local max, min, floor, ceil = math.max, math.min, math.floor, math.ceil
local pack, unpack = struct.pack, struct.unpack

local NEVER = -1
local MAX = 9007199254740991
local MAXPAIR = 4294967295
local MOSTOWED = 4503599627370495

-- States are kept as whole numbers of 7 bytes.
local THREE = '<I7I7I7'
local FOUR = '<I7I7I7I7'
local SIX = '<I7I7I7I7I7I7'

-- A bucket that owes something (see state.go) is kept with the capacity it had and what
-- it owes.
local function unpackbucket(packed)
  if #packed == 42 then
    local at, used, x, y, capacity, owed = unpack(SIX, packed)
    return at, used, x, y, capacity, owed
  end
  local at, used, x, y = unpack(FOUR, packed) -- and where it ended
  return at, used, x, y, 0, 0
end

local function packbucket(at, used, x, y, capacity, owed)
  if owed > 0 then
    return pack(SIX, at, used, x, y, capacity, owed)
  elseif used > 0 then
    return pack(FOUR, at, used, x, y)
  end
  return ''
end

-- spent adds cost to used; if it is negative, what used cannot give is taken from owed.
local function spent(used, owed, cost)
  used = used + cost
  if used < 0 then
    owed = max(owed + used, 0)
    used = 0
  end
  return used, owed
end

-- refilled is what remains of used and owed when amount flows in. An amount past 2^53 is
-- not exact, but it is past both of them as well.
local function refilled(used, owed, amount)
  if amount >= used + owed then
    return 0, 0
  end
  return spent(used, owed, -amount)
end

-- resized fits used and owed, in units of which a token has unit, to another capacity:
-- what it was raised by takes up what is owed, what it cannot hold is owed.
local function resized(oldcapacity, capacity, used, owed, unit)
  local all = used + owed
  if owed > 0 then
    used = used + min(owed, max(capacity - oldcapacity, 0) * unit)
  end
  used = min(used, capacity * unit)
  return used, min(all - used, MOSTOWED)
end

-- Each algorithm enters itself here by its number: the function that decides, and the
-- least length of a state.
local algorithms, sizes = {}, {}

-- asked is the cost to decide by: a look asks for 1, and more than everything
-- cannot be given back.
local function asked(cost, capacity)
  if cost == 0 then
    return 1
  end
  return max(cost, -capacity)
end

-- scale is part of a whole of size from, carried over to a whole of size to. See
-- state.go for its rounding.
local function scale(part, from, to)
  if part == 0 or from == to then
    return min(part, to)
  end
  return min(floor(part * to / from) + 2, to)
end
