-- slidingwindow decides by the grants in the window that now is in, plus those of
-- the window before weighed by how much of it a window ending now would still
-- cover. used counts the grants in the window of at, previous those in the one
-- before. The weighing is done in whole numbers: both sides times the window.
-- Twin of slidingwindow.go.
--
-- Kept: at, used, previous, and the period that they were counted by; of another version
-- beside it the same.

local function slidingwindowcounts(at, used, previous, now, period)
  local start = now - now % period
  if at >= start then
    return used, previous
  elseif at >= start - period then
    return 0, used
  end
  return 0, 0
end

-- slidingwindowwait is the time until what was refused fits: later in this window
-- if the last one is in the way, else some way into the next, where the count of
-- this one is in the way.
local function slidingwindowwait(capacity, period, used, previous, weight, ask)
  local room = capacity - used - ask
  if room >= 0 then
    return weight - floor(room * period / previous)
  end
  return weight + period - floor((capacity - ask) * period / used)
end

local function decideslidingwindow(at, used, previous, now, cost, charge, capacity, period)
  local skew = max(at - now, 0)
  now = now + skew
  local s_at, s_used, s_previous = at, used, previous
  local elapsed = now % period
  used, previous = slidingwindowcounts(at, used, previous, now, period)
  local weight = period - elapsed
  local ask = asked(cost, capacity)
  local retry, reset = 0, 0
  if ask > capacity then
    retry = NEVER
  elseif ask > 0 and previous * weight > (capacity - used - ask) * period then
    retry = skew + slidingwindowwait(capacity, period, used, previous, weight, ask)
  elseif charge then
    previous = max(previous + min(used + ask, 0), 0)
    used = max(used + ask, 0)
    s_at, s_used, s_previous = now, used, previous
  end
  if used > 0 then
    reset = skew + weight + period
  elseif previous > 0 then
    reset = skew + weight
  end
  return max(capacity - used - ceil(previous * weight / period), 0), retry, reset, s_at, s_used, s_previous
end

local function slidingwindowkind()
  local kind = {decide = decideslidingwindow}

  function kind.since(at, used, previous, now, period)
    now = max(now, at)
    used, previous = slidingwindowcounts(at, used, previous, now, period)
    if used + previous == 0 then
      return 0, 0, 0
    end
    return now, used, previous
  end

  function kind.wait(v)
    return v.x - v.at % v.x + (v.used > 0 and v.x or 0)
  end

  function kind.lifetime(_, period)
    return 2 * period
  end

  function kind.size()
    return 1
  end

  local function mostcount(period)
    return min(MAXPAIR, floor(HALF / period))
  end

  function kind.full(_, period)
    return mostcount(period)
  end

  kind.mostused = kind.full

  function kind.mostbeside(v)
    return mostcount(v.x)
  end

  function kind.tellsmore(v, w)
    return v.x > w.x
  end

  function kind.recounted(v)
    return v.used + ceil(v.previous * (v.x - v.at % v.x) / v.x)
  end

  function kind.pack(s, period, _, _, o)
    if o then
      return pack(NINE, s.at, s.used, s.previous, period, o.at, o.used, o.previous, o.x, o.left)
    end
    return pack(FOUR, s.at, s.used, s.previous, period)
  end

  function kind.unpack(packed)
    local s, o = {y = 0, capacity = 0}, nil
    s.at, s.used, s.previous, s.x = unpack(FOUR, packed)
    if #packed > 28 then
      o = {y = 0}
      o.at, o.used, o.previous, o.x, o.left = unpack(FIVE, packed, 29)
      o.most = mostcount(o.x)
    end
    return s, o
  end

  return kind
end

local function slidingwindow(packed, now, cost, charge, capacity, period)
  local at, used, previous = 0, 0, 0
  if packed then
    local oldperiod
    at, used, previous, oldperiod = unpack(FOUR, packed)
    if #packed > 28 or oldperiod ~= period then
      return versioned(slidingwindowkind(), packed, now, cost, charge, capacity, period, 0)
    end
  end
  local remaining, retry, reset, s_at, s_used, s_previous = decideslidingwindow(at, used, previous, now, cost, charge, capacity, period)
  if charge and retry == 0 then
    local state = s_used + s_previous > 0 and pack(FOUR, s_at, s_used, s_previous, period) or ''
    return remaining, retry, reset, state, reset, horizon(s_at, period - s_at % period + (s_used > 0 and period or 0)),
      packed and horizon(at, period - at % period + (used > 0 and period or 0))
  end
  return remaining, retry, reset
end

algorithms[4], sizes[4], kinds[4] = slidingwindow, {28, 63}, slidingwindowkind
