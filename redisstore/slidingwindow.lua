-- slidingwindow decides by the grants in the window that now is in, plus those of
-- the window before weighed by how much of it a window ending now would still
-- cover. used counts the grants in the window of at, previous those in the one
-- before. The weighing is done in whole numbers: both sides times the window.
-- Twin of slidingwindow.go.
--
-- Kept: at, used, previous, and the period that they were counted by.

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

-- adoptslidingwindow carries over what a window of another length counts as
-- consumed, as grants of the window that now is in.
local function adoptslidingwindow(packed, now, period)
  local at, used, previous, oldperiod = unpack(FOUR, packed)
  if oldperiod == period then
    return at, used, previous, false
  end
  now = max(now, at)
  used, previous = slidingwindowcounts(at, used, previous, now, oldperiod)
  used = used + ceil(previous * (oldperiod - now % oldperiod) / oldperiod)
  if used == 0 then
    return 0, 0, 0, true
  end
  return now, min(used, MAXPAIR, floor(floor(MAX / 2) / period)), 0, true
end

local function slidingwindow(packed, now, cost, charge, capacity, period)
  local s_at, s_used, s_previous, adopted = 0, 0, 0, false
  if packed then
    s_at, s_used, s_previous, adopted = adoptslidingwindow(packed, now, period)
  end
  local skew = max(s_at - now, 0)
  now = now + skew
  local elapsed = now % period
  local used, previous = slidingwindowcounts(s_at, s_used, s_previous, now, period)
  local weight = period - elapsed
  local ask = asked(cost, capacity)
  local retry, reset = 0, 0
  if ask > capacity then
    retry = NEVER
  elseif previous * weight > (capacity - used - ask) * period then
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
  local state
  if adopted or (charge and retry == 0) then
    state = s_used + s_previous > 0 and pack(FOUR, s_at, s_used, s_previous, period) or ''
  end
  return max(capacity - used - ceil(previous * weight / period), 0), retry, reset, state
end

algorithms['4'], sizes['4'] = slidingwindow, 28
