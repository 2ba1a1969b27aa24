-- steppedtokenbucket decides by a bucket that gains refill tokens at once, at
-- each whole period since it was last full. used counts the tokens missing from a
-- full bucket; at is the latest step, or the moment the bucket was first taken
-- from. Twin of steppedtokenbucket.go.
--
-- Kept: at, used, and the refill and period that used was counted by; if something is
-- owed, the capacity and that.

-- A steps * refill past 2^53 is not exact, but it is past what is missing as well.
local function steppedsince(at, used, owed, now, refill, period)
  local steps = floor((now - at) / period)
  if used + owed <= steps * refill then
    return now, 0, 0
  end
  used, owed = refilled(used, owed, steps * refill)
  return at + steps * period, used, owed
end

-- worth is how long a period must have run to be worth as many tokens as the elapsed
-- part of an old one, rounded down, and less than the whole.
local function worth(oldrefill, oldperiod, refill, period, elapsed)
  local micros = elapsed * oldrefill / oldperiod * period / refill
  if micros >= period then
    return period - 1
  end
  return max(floor(micros) - 2, 0)
end

-- moststeps is what flows in by steps in as long a time as can be counted.
local function moststeps(refill, period)
  local steps = floor(MAX / period)
  if steps > floor(MOSTOWED / refill) then
    return MOSTOWED
  end
  return steps * refill
end

-- adoptsteppedtokenbucket carries over what is missing and what is owed, and what the
-- part of a period that has passed since the last step is worth.
local function adoptsteppedtokenbucket(packed, now, capacity, refill, period)
  local at, used, oldrefill, oldperiod, oldcapacity, owed = unpackbucket(packed)
  if oldperiod == period and oldrefill == refill and used <= capacity and (owed == 0 or oldcapacity == capacity) then
    return at, used, owed, false
  end
  now = max(now, at)
  at, used, owed = steppedsince(at, used, owed, now, oldrefill, oldperiod)
  used, owed = resized(oldcapacity, capacity, used, owed, 1)
  owed = min(owed, max(moststeps(refill, period) - capacity, 0))
  if used + owed == 0 then
    return 0, 0, 0, true
  end
  return max(now - worth(oldrefill, oldperiod, refill, period, now - at), 0), used, owed, true
end

local function steppedtokenbucket(packed, now, cost, charge, capacity, refill, period)
  local s_at, s_used, s_owed, adopted = 0, 0, 0, false
  if packed then
    s_at, s_used, s_owed, adopted = adoptsteppedtokenbucket(packed, now, capacity, refill, period)
  end
  local skew = max(s_at - now, 0)
  now = now + skew
  local at, used, owed = steppedsince(s_at, s_used, s_owed, now, refill, period)
  local ask = asked(cost, capacity)
  local retry, reset = 0, 0
  if ask > capacity then
    retry = NEVER
  elseif ask > capacity - used then
    retry = ceil((ask - (capacity - used)) / refill) * period - (now - at) + skew
  elseif charge then
    used, owed = spent(used, owed, ask)
    s_at, s_used, s_owed = at, used, owed
  end
  if used + owed > 0 then
    reset = ceil((used + owed) / refill) * period - (now - at) + skew
  end
  local state
  if adopted or (charge and retry == 0) then
    state = packbucket(s_at, s_used, refill, period, capacity, s_owed)
  end
  return capacity - used, retry, reset, state
end

algorithms['2'], sizes['2'] = steppedtokenbucket, 28
