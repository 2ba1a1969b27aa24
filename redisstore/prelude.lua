-- Every number here is a whole number below 2^53, which a double holds exactly.
-- The quotient of two such numbers, rounded down or up, is exact as well.
local max, min, floor, ceil = math.max, math.min, math.floor, math.ceil
local pack, unpack = struct.pack, struct.unpack

local NEVER = -1
local MAX = 9007199254740991
local MAXPAIR = 4294967295

-- States are kept as whole numbers of 7 bytes.
local THREE = '<I7I7I7'
local FOUR = '<I7I7I7I7'
local FIVE = '<I7I7I7I7I7'

-- unpackbucket gives the four numbers of a bucket's state and, if it was clipped, the
-- capacity that it was clipped to (see state.go); packbucket is its reverse.
local function unpackbucket(packed)
  if #packed == 35 then
    return unpack(FIVE, packed)
  end
  local at, used, x, y = unpack(FOUR, packed) -- and where it ended, which is no capacity
  return at, used, x, y
end

local function packbucket(at, used, x, y, clipped)
  if used == 0 then
    return ''
  elseif clipped then
    return pack(FIVE, at, used, x, y, clipped)
  end
  return pack(FOUR, at, used, x, y)
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
