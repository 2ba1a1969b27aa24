-- fixedwindow decides by the grants in the window that now is in, windows being
-- aligned to the Unix epoch. used counts the grants in the window of at. Twin of
-- fixedwindow.go.
--
-- Kept: at, used, and the period that used was counted by; of another version beside it
-- the same.

local function fixedwindowused(at, used, now, period)
  if now - now % period > at then
    return 0
  end
  return used
end

local function decidefixedwindow(at, used, _, now, cost, charge, capacity, period)
  local skew = max(at - now, 0)
  now = now + skew
  local s_at, s_used = at, used
  local elapsed = now % period
  used = fixedwindowused(at, used, now, period)
  local ask = asked(cost, capacity)
  local retry, reset = 0, 0
  if ask > capacity then
    retry = NEVER
  elseif ask > max(capacity - used, 0) then
    retry = skew + (period - elapsed)
  elseif charge then
    used = max(used + ask, 0)
    s_at, s_used = now, used
  end
  if used > 0 then
    reset = skew + (period - elapsed)
  end
  return max(capacity - used, 0), retry, reset, s_at, s_used, 0
end

local function fixedwindowkind()
  local kind = {decide = decidefixedwindow}

  function kind.since(at, used, _, now, period)
    now = max(now, at)
    used = fixedwindowused(at, used, now, period)
    if used == 0 then
      return 0, 0, 0
    end
    return now, used, 0
  end

  function kind.wait(v)
    return v.x - v.at % v.x
  end

  function kind.lifetime(_, period)
    return period
  end

  function kind.size()
    return 1
  end

  function kind.full()
    return MAX
  end

  kind.mostused, kind.mostbeside = kind.full, kind.full

  function kind.tellsmore(v, w)
    return v.x > w.x
  end

  function kind.recounted(v)
    return v.used
  end

  function kind.pack(s, period, _, _, o)
    if o then
      return pack(SEVEN, s.at, s.used, period, o.at, o.used, o.x, o.left)
    end
    return pack(THREE, s.at, s.used, period)
  end

  function kind.unpack(packed)
    local s, o = {previous = 0, y = 0, capacity = 0}, nil
    s.at, s.used, s.x = unpack(THREE, packed)
    if #packed > 21 then
      o = {previous = 0, y = 0, most = MAX}
      o.at, o.used, o.x, o.left = unpack(FOUR, packed, 22)
    end
    return s, o
  end

  return kind
end

local function fixedwindow(packed, now, cost, charge, capacity, period)
  local at, used = 0, 0
  if packed then
    local oldperiod
    at, used, oldperiod = unpack(THREE, packed)
    if #packed > 21 or oldperiod ~= period then
      return versioned(fixedwindowkind(), packed, now, cost, charge, capacity, period, 0)
    end
  end
  local remaining, retry, reset, s_at, s_used = decidefixedwindow(at, used, 0, now, cost, charge, capacity, period)
  if charge and retry == 0 then
    local state = s_used > 0 and pack(THREE, s_at, s_used, period) or ''
    return remaining, retry, reset, state, reset, horizon(s_at, period - s_at % period),
      packed and horizon(at, period - at % period)
  end
  return remaining, retry, reset
end

algorithms[3], sizes[3], kinds[3] = fixedwindow, {21, 49}, fixedwindowkind
