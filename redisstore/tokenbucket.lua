-- tokenbucket decides by a bucket that refills continuously. used counts the
-- units missing from a full bucket at the instant at. Twin of tokenbucket.go.
--
-- Kept: at, used, and the rate and unit that used was counted by; if another version is
-- beside it, also its capacity and that.

local function decidetokenbucket(at, used, _, now, cost, charge, capacity, rate, unit)
  local full = capacity * unit
  local skew = 0
  if at > now then
    now, skew = at, at - now
  end
  local s_at, s_used = at, used
  used = used - (now - at) * rate
  if used < 0 then
    used = 0
  end
  local ask = cost > 0 and cost or asked(cost, capacity)
  local retry, reset = 0, 0
  if ask > capacity then
    retry = NEVER
  elseif used + ask * unit > full then
    retry = skew + ceil((used + ask * unit - full) / rate)
  elseif charge then
    used = max(used + ask * unit, 0)
    s_at, s_used = now, used
  end
  if used > 0 then
    reset = skew + ceil(used / rate)
  end
  return floor((full - used) / unit), retry, reset, s_at, s_used, 0
end

local function tokenbucketkind()
  local kind = bucketkind({decide = decidetokenbucket})

  function kind.since(at, used, _, now, rate)
    now = max(now, at)
    used = used - (now - at) * rate
    if used <= 0 then
      return 0, 0, 0
    end
    return now, used, 0
  end

  function kind.wait(v)
    return ceil(v.used / v.x)
  end

  function kind.lifetime(used, rate)
    return ceil(used / rate)
  end

  function kind.size(unit)
    return unit
  end

  function kind.full(capacity, _, unit)
    return capacity * unit
  end

  kind.mostused = kind.full

  function kind.mostbeside(v, capacity)
    return min(max(v.used, capacity * v.y), HALF)
  end

  function kind.faster(v, rate, unit)
    return v.x / v.y > rate / unit
  end

  return kind
end

local function tokenbucket(packed, now, cost, charge, capacity, rate, unit)
  local at, used = 0, 0
  if packed then
    local oldrate, oldunit
    at, used, oldrate, oldunit = unpack(FOUR, packed)
    if #packed > 28 or oldrate ~= rate or oldunit ~= unit or used > capacity * unit then
      return versioned(tokenbucketkind(), packed, now, cost, charge, capacity, rate, unit)
    end
  end
  local remaining, retry, reset, s_at, s_used = decidetokenbucket(at, used, 0, now, cost, charge, capacity, rate, unit)
  if charge and retry == 0 then
    local state = s_used > 0 and pack(FOUR, s_at, s_used, rate, unit) or ''
    return remaining, retry, reset, state, reset, horizon(s_at, s_used / rate), packed and horizon(at, used / rate)
  end
  return remaining, retry, reset
end

algorithms[1], sizes[1], kinds[1] = tokenbucket, {28, 78}, tokenbucketkind
