-- What is kept of a key, and what a change of its limit's numbers makes of that. Twin
-- of versions.go.
--
-- A state is three numbers: at, used, previous. The numbers of a limit are its capacity,
-- x and y, whose meaning each algorithm tells. Another version, kept beside a state, is a
-- table of its state, its numbers, the most that used is counted up to (and 1 if that is
-- sure), and when the current version took over from it.
--
-- This is rare, and to define a function costs time in each run of a script. So all of it
-- is inside of functions that are called when it is needed.

-- versioned decides on a key whose numbers have changed, or that has another version
-- beside its state. kind is a table of what the algorithm knows:
--   decide     the verdict, and the state after it
--   since      a state as it stands at now, 0, 0, 0 if that is as at first sight
--   wait       how long from its own time a version takes until it is that
--   lifetime   how long that takes at most if so much is used
--   size       what a token counts for
--   full       what a full bucket counts, or can be counted of a window
--   mostused   the most that a state counts
--   mostbeside that for a version whose capacity is not known
--   faster     whether a bucket is faster than other numbers
--   tellsmore  whether of two versions the first knows of more that was consumed
--   recounted  what is consumed in a state, in the units of other numbers
--   worth      how long a period must have run to be worth as much as the elapsed part of
--              another version's
--   pack       a state, and what is beside it, as a string; unpack the reverse
--
-- It returns what remains, the retry, the reset, and if something has to be written the
-- state as a string and how long that is needed.
local function versioned(kind, packed, now, cost, charge, capacity, x, y)
  local RETIRED = 8

  local function since(v)
    v.at, v.used, v.previous = kind.since(v.at, v.used, v.previous, now, v.x, v.y)
    if v.used + v.previous == 0 then
      v.at = now
    end
  end

  -- charged is v after a grant or a refund of ask tokens under the current version, which
  -- was as at first sight if fresh is set.
  local function charged(v, ask, fresh)
    since(v)
    local unasked = now - v.left
    local lifetime = max(kind.lifetime(v.most, v.x, v.y), kind.lifetime(kind.full(capacity, x, y), x, y))
    if unasked >= RETIRED * lifetime or v.used + v.previous == 0 and (unasked >= lifetime or fresh) then
      return nil
    end
    v.previous = max(v.previous + min(v.used + ask, 0), 0)
    v.used = max(min(v.used + ask * kind.size(v.y), v.most), 0)
    return v
  end

  -- neededbeside says whether v has to be remembered beside next, a state of these numbers.
  local function neededbeside(v, next, fits)
    if v.used + v.previous + next.used + next.previous == 0 then
      return false
    end
    return not kind.bucket or not fits or kind.faster(v, x, y)
  end

  -- carryover gives the state that follows from that of the two versions which tells more
  -- (there may be only the first), and that one if it is to be remembered beside it.
  local function carryover(v, w)
    if w and kind.tellsmore(w, v) then
      v = w
    end
    local recounted = kind.recounted(v, capacity, x, y)
    local next = {at = now, used = min(recounted, kind.full(capacity, x, y)), previous = 0, x = x, y = y}
    local needed = neededbeside(v, next, recounted <= next.used)
    if kind.worth and not needed then
      next.at = now - kind.worth(v, now - v.at, x, y)
    end
    since(next)
    if needed and v.sure == 0 then
      v.most = max(v.most, kind.mostbeside(v, capacity, now))
    end
    return next, needed and v or nil
  end

  -- returns says whether other is, for all that is known, the version of these numbers.
  local function returns(other)
    local most = kind.mostused(capacity, x, y)
    if other.sure == 1 and other.most ~= most then
      return false
    end
    return other.x == x and other.y == y and other.used <= most
  end

  -- adopt turns the state old and the version beside it, if there is one, into what is
  -- kept under these numbers.
  local function adopt(old, other)
    since(old)
    old.left = now
    if not other then
      old.most, old.sure = 0, 0
      return carryover(old, nil)
    end
    old.most, old.sure = kind.mostused(old.capacity, old.x, old.y), 1
    local back = returns(other)
    since(other)
    if not back then
      return carryover(old, other)
    end
    local kept = neededbeside(old, other, old.capacity <= capacity) and old or nil
    if other.used + other.previous == 0 then
      other.at = 0 -- fresh, if it is full again
    end
    return other, kept
  end

  -- continues says whether old is a state under these numbers, too.
  local function continues(old, other)
    if old.x ~= x or old.y ~= y then
      return false
    elseif other and kind.bucket then
      return old.capacity == capacity
    end
    return old.used <= kind.mostused(capacity, x, y)
  end

  local s, other = kind.unpack(packed)
  local request = now
  local changed = not continues(s, other)
  if changed then
    now = max(request, s.at, other and other.at or 0)
    s, other = adopt(s, other)
  end
  now = max(request, other and other.at or 0) -- time stands still for the key as a whole
  local skew = now - request
  local _, used, previous = kind.since(s.at, s.used, s.previous, now, x, y)
  local fresh = used + previous == 0
  local remaining, retry, reset
  remaining, retry, reset, s.at, s.used, s.previous =
    kind.decide(s.at, s.used, s.previous, now, cost, charge, capacity, x, y)
  charge = charge and retry == 0
  local state, lives
  if charge or changed then
    if other and charge then
      other = charged(other, asked(cost, capacity), fresh)
    end
    local wait = other and other.used + other.previous > 0 and kind.wait(other) + other.at - now or 0
    lives = skew + max(reset, wait)
    if s.used + s.previous == 0 then
      s.at = 0
    end
    state = lives > skew and kind.pack(s, x, y, capacity, other) or ''
  end
  return remaining, retry > 0 and retry + skew or retry, reset > 0 and reset + skew or 0, state, lives
end

-- bucketkind is what the kinds of buckets have in common, in which a token counts for
-- size(y).
local function bucketkind(kind)
  kind.bucket = true
  local BESIDE = '<I7I7I7I7I7I7I7I1'

  -- recounted is one more than capacity holds if that does not hold it.
  function kind.recounted(v, capacity, _, y)
    local from, to = kind.size(v.y), kind.size(y)
    local tokens, fraction = floor(v.used / from), v.used % from
    if tokens > capacity or (tokens == capacity and fraction > 0) then
      return capacity * to + 1
    end
    return tokens * to + scale(fraction, from, to)
  end

  function kind.tellsmore(v, w)
    return v.used / kind.size(v.y) > w.used / kind.size(w.y)
  end

  function kind.pack(s, x, y, capacity, o)
    if o then
      return pack(FOUR, s.at, s.used, x, y) .. pack(BESIDE, capacity, o.at, o.used, o.x, o.y, o.most, o.left, o.sure)
    end
    return pack(FOUR, s.at, s.used, x, y)
  end

  function kind.unpack(packed)
    local s, o = {previous = 0}, nil
    s.at, s.used, s.x, s.y = unpack(FOUR, packed)
    if #packed > 28 then
      o = {previous = 0}
      s.capacity, o.at, o.used, o.x, o.y, o.most, o.left, o.sure = unpack(BESIDE, packed, 29)
    end
    return s, o
  end

  return kind
end
