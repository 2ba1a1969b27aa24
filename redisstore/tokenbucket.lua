-- tokenbucket decides by a bucket that refills continuously. used counts the
-- units missing from a full bucket at the instant at. Twin of tokenbucket.go.
--
-- Kept: at, used, and the rate and unit that used was counted by; if clipped, the
-- capacity.

-- An elapsed * rate past 2^53 is not exact, but it is past used as well.
local function tokenbucketused(at, used, now, rate)
  return max(used - (now - at) * rate, 0)
end

-- adopttokenbucket carries the tokens and the fraction of one that are missing
-- over to other units.
local function adopttokenbucket(packed, now, capacity, rate, unit)
  local at, used, oldrate, oldunit, clipped = unpackbucket(packed)
  local resized = clipped and clipped ~= capacity
  if oldunit == unit and oldrate == rate and used <= capacity * unit and not resized then
    return at, used, clipped, false
  end
  now = max(now, at)
  used = tokenbucketused(at, used, now, oldrate)
  if used == 0 then
    return 0, 0, nil, true
  end
  local tokens, fraction = floor(used / oldunit), used % oldunit
  if clipped then
    tokens = tokens + max(capacity - clipped, 0)
  end
  if tokens >= capacity then
    return now, capacity * unit, (clipped or tokens > capacity or fraction > 0) and capacity, true
  end
  return now, tokens * unit + scale(fraction, oldunit, unit), clipped and capacity, true
end

local function tokenbucket(packed, now, cost, charge, capacity, rate, unit)
  local s_at, s_used, s_clipped, adopted = 0, 0, nil, false
  if packed then
    s_at, s_used, s_clipped, adopted = adopttokenbucket(packed, now, capacity, rate, unit)
  end
  local full = capacity * unit
  local skew = max(s_at - now, 0)
  now = now + skew
  local used = tokenbucketused(s_at, s_used, now, rate)
  local ask = asked(cost, capacity)
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
  local state
  if adopted or (charge and retry == 0) then
    state = packbucket(s_at, s_used, rate, unit, s_clipped)
  end
  return floor((full - used) / unit), retry, reset, state
end

algorithms['1'], sizes['1'] = tokenbucket, 28
