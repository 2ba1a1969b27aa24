-- tokenbucket decides by a bucket that refills continuously. used counts the
-- units missing from a full bucket at the instant at. Twin of tokenbucket.go.
--
-- Kept: at, used, and the rate and unit that used was counted by; if something is
-- owed, the capacity and that.

-- recounted is an amount in units of which a token has from, in units of which it has to.
local function recounted(amount, from, to)
  local tokens = floor(amount / from)
  if tokens >= floor(MOSTOWED / to) then
    return floor(MOSTOWED / to) * to
  end
  return tokens * to + scale(amount % from, from, to)
end

-- adopttokenbucket carries what is missing and what is owed over to other units and
-- another capacity.
local function adopttokenbucket(packed, now, capacity, rate, unit)
  local at, used, oldrate, oldunit, oldcapacity, owed = unpackbucket(packed)
  if oldunit == unit and oldrate == rate and used <= capacity * unit and (owed == 0 or oldcapacity == capacity) then
    return at, used, owed, false
  end
  now = max(now, at)
  used, owed = refilled(used, owed, (now - at) * oldrate)
  used, owed = resized(oldcapacity, capacity, recounted(used, oldunit, unit), recounted(owed, oldunit, unit), unit)
  if used + owed == 0 then
    return 0, 0, 0, true
  end
  return now, used, owed, true
end

local function tokenbucket(packed, now, cost, charge, capacity, rate, unit)
  local s_at, s_used, s_owed, adopted = 0, 0, 0, false
  if packed then
    s_at, s_used, s_owed, adopted = adopttokenbucket(packed, now, capacity, rate, unit)
  end
  local full = capacity * unit
  local skew = max(s_at - now, 0)
  now = now + skew
  local used, owed = refilled(s_used, s_owed, (now - s_at) * rate)
  local ask = asked(cost, capacity)
  local retry, reset = 0, 0
  if ask > capacity then
    retry = NEVER
  elseif used + ask * unit > full then
    retry = skew + ceil((used + ask * unit - full) / rate)
  elseif charge then
    used, owed = spent(used, owed, ask * unit)
    s_at, s_used, s_owed = now, used, owed
  end
  if used + owed > 0 then
    reset = skew + ceil((used + owed) / rate)
  end
  local state
  if adopted or (charge and retry == 0) then
    state = packbucket(s_at, s_used, rate, unit, capacity, s_owed)
  end
  return floor((full - used) / unit), retry, reset, state
end

algorithms['1'], sizes['1'] = tokenbucket, 28
