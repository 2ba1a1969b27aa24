-- fixedwindow decides by the grants in the window that now is in, windows being
-- aligned to the Unix epoch. used counts the grants in the window of at. Twin of
-- fixedwindow.go.
--
-- Kept: at, used, and the period that used was counted by.

local function fixedwindowused(at, used, now, period)
  if now - now % period > at then
    return 0
  end
  return used
end

-- adoptfixedwindow carries the count over, if its window lasts, to the window of
-- another length that now is in.
local function adoptfixedwindow(packed, now, period)
  local at, used, oldperiod = unpack(THREE, packed)
  if oldperiod == period then
    return at, used, false
  end
  now = max(now, at)
  used = fixedwindowused(at, used, now, oldperiod)
  if used == 0 then
    return 0, 0, true
  end
  return now, used, true
end

local function fixedwindow(packed, now, cost, charge, capacity, period)
  local s_at, s_used, adopted = 0, 0, false
  if packed then
    s_at, s_used, adopted = adoptfixedwindow(packed, now, period)
  end
  local skew = max(s_at - now, 0)
  now = now + skew
  local elapsed = now % period
  local used = fixedwindowused(s_at, s_used, now, period)
  local ask = asked(cost, capacity)
  local retry, reset = 0, 0
  if ask > capacity then
    retry = NEVER
  elseif ask > capacity - used then
    retry = skew + (period - elapsed)
  elseif charge then
    used = max(used + ask, 0)
    s_at, s_used = now, used
  end
  if used > 0 then
    reset = skew + (period - elapsed)
  end
  local state
  if adopted or (charge and retry == 0) then
    state = s_used > 0 and pack(THREE, s_at, s_used, period) or ''
  end
  return max(capacity - used, 0), retry, reset, state
end

algorithms['3'], sizes['3'] = fixedwindow, 21
