-- steppedtokenbucket decides by a bucket that gains refill tokens at once, at
-- each whole period since it was last full. used counts the tokens missing from a
-- full bucket; at is the latest step, or the moment the bucket was first taken
-- from. Twin of steppedtokenbucket.go.
--
-- Kept: at, used, and the refill and period that used was counted by; if clipped,
-- the capacity.

-- A steps * refill past 2^53 is not exact, but it is past used as well.
local function steppedsince(at, used, now, refill, period)
  local steps = floor((now - at) / period)
  if used <= steps * refill then
    return now, 0
  end
  return at + steps * period, used - steps * refill
end

-- adoptsteppedtokenbucket carries the missing tokens over, and the share of a
-- period that has passed since the last step.
local function adoptsteppedtokenbucket(packed, now, capacity, refill, period)
  local at, used, oldrefill, oldperiod, clipped = unpackbucket(packed)
  local resized = clipped and clipped ~= capacity
  if oldperiod == period and oldrefill == refill and used <= capacity and not resized then
    return at, used, clipped, false
  end
  now = max(now, at)
  at, used = steppedsince(at, used, now, oldrefill, oldperiod)
  if used == 0 then
    return 0, 0, nil, true
  end
  if clipped then
    used = used + max(capacity - clipped, 0)
  end
  local tostep = scale(oldperiod - (now - at), oldperiod, period)
  return max(now - (period - tostep), 0), min(used, capacity), (clipped or used > capacity) and capacity, true
end

local function steppedtokenbucket(packed, now, cost, charge, capacity, refill, period)
  local s_at, s_used, s_clipped, adopted = 0, 0, nil, false
  if packed then
    s_at, s_used, s_clipped, adopted = adoptsteppedtokenbucket(packed, now, capacity, refill, period)
  end
  local skew = max(s_at - now, 0)
  now = now + skew
  local at, used = steppedsince(s_at, s_used, now, refill, period)
  local ask = asked(cost, capacity)
  local retry, reset = 0, 0
  if ask > capacity then
    retry = NEVER
  elseif ask > capacity - used then
    retry = ceil((ask - (capacity - used)) / refill) * period - (now - at) + skew
  elseif charge then
    used = max(used + ask, 0)
    s_at, s_used = at, used
  end
  if used > 0 then
    reset = ceil(used / refill) * period - (now - at) + skew
  end
  local state
  if adopted or (charge and retry == 0) then
    state = packbucket(s_at, s_used, refill, period, s_clipped)
  end
  return capacity - used, retry, reset, state
end

algorithms['2'], sizes['2'] = steppedtokenbucket, 28
