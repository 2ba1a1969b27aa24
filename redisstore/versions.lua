-- What is kept of a key, and what a change of its limit's numbers makes of that. Twin
-- of versions.go.
--
-- A state is three numbers: at, used, previous. The numbers of a limit are its capacity,
-- x and y, whose meaning each algorithm tells. Another version, kept beside a state, is a
-- table of its state, its numbers, and the most that used is counted up to.
--
-- This is rare, and to define a function costs time in each run of a script. So all of it
-- is inside of functions that are called when it is needed.

-- versioned decides on a key whose numbers have changed, or that has another version
-- beside its state. kind is a table of what the algorithm knows:
--   decide     the verdict, and the state after it
--   since      a state as it stands at now, 0, 0, 0 if that is as at first sight
--   wait       how long from its own time a version takes until it is that
--   size       what a token counts for
--   full       what a full bucket counts, or can be counted of a window
--   mostused   the most that a state counts
--   mostbefore that for a state whose capacity is not known
--   outlasts   whether a version is faster, or has the longer window, than other numbers
--   tellsmore  whether of two versions the first knows of more that was consumed
--   recounted  what is consumed in a state, in the units of other numbers
--   headstart  how long the period of a stepped bucket has run that is carried over
--   pack       a state, and what is beside it, as a string; unpack the reverse
--
-- It returns what remains, the retry, the reset, and if something has to be written the
-- state as a string and how long that is needed.
local function versioned(kind, packed, now, cost, charge, capacity, x, y)
  local function since(v)
    v.at, v.used, v.previous = kind.since(v.at, v.used, v.previous, now, v.x, v.y)
  end

  -- charged is v after a grant or a refund of ask tokens under the current version.
  local function charged(v, ask)
    since(v)
    if v.used + v.previous == 0 then
      return nil
    end
    v.previous = max(v.previous + min(v.used + ask, 0), 0)
    v.used = max(min(v.used + ask * kind.size(v.y), v.most), 0)
    return v.used + v.previous > 0 and v or nil
  end

  -- neededbeside says whether v has to be remembered beside a state of these numbers.
  local function neededbeside(v, fits)
    if v.used + v.previous == 0 then
      return false
    end
    return (kind.bucket and not fits) or kind.outlasts(v, x, y)
  end

  -- carryover gives the state that the states of two versions make (there may be only the
  -- first), and which of them is to be remembered beside it.
  local function carryover(v, w)
    if w and kind.tellsmore(w, v) then
      v, w = w, v
    end
    local recounted = kind.recounted(v, capacity, x, y)
    local used = recounted
    if w then
      used = max(used, kind.recounted(w, capacity, x, y))
    end
    used = min(used, kind.full(capacity, x, y))
    local needed = neededbeside(v, recounted <= used)
    local next = {at = now, used = used, previous = 0, x = x, y = y}
    if kind.headstart then
      next.at = now - kind.headstart(v, now, needed, x, y)
    end
    since(next)
    if needed then
      return next, v
    elseif w and neededbeside(w, true) then
      return next, w
    end
    return next, nil
  end

  -- adopt turns the state old and the version beside it, if there is one, into what is
  -- kept under these numbers.
  local function adopt(old, other)
    since(old)
    if not other then
      old.most = kind.mostbefore(old, capacity)
      return carryover(old, nil)
    end
    old.most = kind.mostused(old.capacity, old.x, old.y)
    local returns = other.x == x and other.y == y and other.used <= kind.mostused(capacity, x, y)
    since(other)
    if not returns then
      return carryover(old, other)
    end
    return other, neededbeside(old, old.capacity <= capacity) and old or nil
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
  local remaining, retry, reset
  remaining, retry, reset, s.at, s.used, s.previous =
    kind.decide(s.at, s.used, s.previous, now, cost, charge, capacity, x, y)
  charge = charge and retry == 0
  local state, lives
  if charge or changed then
    if other and charge then
      other = charged(other, asked(cost, capacity))
    end
    if s.used + s.previous == 0 then
      s.at = 0
    end
    lives = skew + max(reset, other and kind.wait(other) + other.at - now or 0)
    state = (s.used + s.previous > 0 or other) and kind.pack(s, x, y, capacity, other) or ''
  end
  return remaining, retry > 0 and retry + skew or retry, reset > 0 and reset + skew or 0, state, lives
end

-- bucketkind is what the kinds of buckets have in common, in which a token counts for
-- size(y).
local function bucketkind(kind)
  kind.bucket = true

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
      return pack(TEN, s.at, s.used, x, y, capacity, o.at, o.used, o.x, o.y, o.most)
    end
    return pack(FOUR, s.at, s.used, x, y)
  end

  function kind.unpack(packed)
    local s, o = {previous = 0}, nil
    s.at, s.used, s.x, s.y = unpack(FOUR, packed)
    if #packed > 28 then
      o = {previous = 0}
      s.capacity, o.at, o.used, o.x, o.y, o.most = unpack(SIX, packed, 29)
    end
    return s, o
  end

  return kind
end
