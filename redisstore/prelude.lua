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

-- Each algorithm enters itself here by its number: the function that decides, the sizes that a state has,
-- alone and with another version beside it, and what versions.lua has to know of it. A log has one size, and no versions.
--
-- The function that decides returns what remains, the retry, the reset, and if something has to be written the
-- state as a string and how long that is needed; and if it knows them, the horizons of that state and of the one before.
local algorithms, sizes, kinds = {}, {}, {}

-- asked is the cost to decide by: a look asks for 1, and more than everything
-- cannot be given back.
local function asked(cost, capacity)
  if cost == 0 then
    return 1
  end
  return max(cost, -capacity)
end

-- The shortest span of time, in microseconds, at whose end keys expire: about a second.
local SHORTEST = 1048576

-- horizon is until when a key lives, by the server's clock, if its state is needed for so long from its own time on:
-- to the end of a span of time of an eighth to a quarter of that. So a state tells by itself until when its key lives
-- at least, and the next one needs a new expiry only if its own horizon is later.
local function horizon(at, needed)
  local span = SHORTEST
  while span * 8 < needed do
    span = span * 2
  end
  local till = at + needed
  return till - till % span + span
end

-- scale is part of a whole of size from, carried over to a whole of size to. See
-- state.go for its rounding.
local function scale(part, from, to)
  if part == 0 or from == to then
    return min(part, to)
  end
  return min(floor(part * to / from) + 2, to)
end
