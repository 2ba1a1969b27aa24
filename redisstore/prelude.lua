-- Every number here is a whole number below 2^53, which a double holds exactly.
-- The quotient of two such numbers, rounded down or up, is exact as well.
local max, min, floor, ceil = math.max, math.min, math.floor, math.ceil
local spread = unpack
local pack, unpack = struct.pack, struct.unpack

-- What is told instead of a wait.
local NEVER, BADSTATE, WRONGTYPE, NOROOM = -1, -2, -3, -4
local MAX = 9007199254740991
local HALF = 4503599627370495
local MAXPAIR = 4294967295

-- States are kept as whole numbers of 7 bytes.
local THREE = '<I7I7I7'
local FOUR = '<I7I7I7I7'
local FIVE = '<I7I7I7I7I7'
local SEVEN = '<I7I7I7I7I7I7I7'
local NINE = '<I7I7I7I7I7I7I7I7I7'

-- Each algorithm enters itself here by its number: the function that decides, and the
-- sizes that a state has, alone and with another version beside it.
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
