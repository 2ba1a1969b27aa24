-- steppedtokenbucket decides by a bucket that gains refill tokens at once, at
-- each whole period since it was last full. used counts the tokens missing from a
-- full bucket; at is the latest step, or the moment the bucket was first taken
-- from. Twin of steppedtokenbucket.go.
--
-- Kept: at, used, and the refill and period that used was counted by; if another version
-- is beside it, also its capacity and that.

-- A steps * refill past 2^53 is not exact, but it is past what is missing as well.
local function steppedsince(at, used, now, refill, period)
  local steps = floor((now - at) / period)
  if used <= steps * refill then
    return now, 0
  end
  return at + steps * period, used - steps * refill
end

local function decidestepped(at, used, _, now, cost, charge, capacity, refill, period)
  local skew = max(at - now, 0)
  now = now + skew
  local s_at, s_used = at, used
  at, used = steppedsince(at, used, now, refill, period)
  local ask = asked(cost, capacity)
  local retry, reset = 0, 0
  if ask > capacity then
    retry = NEVER
  elseif ask > max(capacity - used, 0) then
    retry = ceil((ask - (capacity - used)) / refill) * period - (now - at) + skew
  elseif charge then
    used = max(used + ask, 0)
    s_at, s_used = at, used
  end
  if used > 0 then
    reset = ceil(used / refill) * period - (now - at) + skew
  end
  return max(capacity - used, 0), retry, reset, s_at, s_used, 0
end

-- moststepped is the largest capacity that whole steps fill in time that can be counted.
local function moststepped(refill, period)
  local steps = floor(MAX / period)
  if steps > floor(MAX / refill) then
    return MAX
  end
  return steps * refill
end

local function steppedkind()
  local kind = bucketkind({decide = decidestepped})

  function kind.since(at, used, _, now, refill, period)
    at, used = steppedsince(at, used, max(now, at), refill, period)
    if used == 0 then
      return 0, 0, 0
    end
    return at, used, 0
  end

  function kind.wait(v)
    return ceil(v.used / v.x) * v.y
  end

  function kind.lifetime(used, refill, period)
    return ceil(used / refill) * period
  end

  function kind.size()
    return 1
  end

  function kind.full(capacity)
    return capacity
  end

  function kind.mostused(capacity, refill, period)
    return min(capacity + refill, moststepped(refill, period))
  end

  -- almost makes up for what the rounding of four operations can add.
  local almost = 1 - 1 / 1125899906842624

  function kind.mostbeside(v, capacity, now)
    local due = floor((now - v.at) * v.x / v.y * almost)
    return min(max(v.used - due, capacity) + v.x, moststepped(v.x, v.y))
  end

  function kind.faster(v, refill, period)
    local old, new = v.x / v.y, refill / period
    return old > new or (old == new and v.x > refill)
  end

  function kind.worth(v, elapsed, refill, period)
    return floor(elapsed * v.x / v.y * period / refill * almost)
  end

  return kind
end

local function steppedtokenbucket(packed, now, cost, charge, capacity, refill, period)
  local at, used = 0, 0
  if packed then
    local oldrefill, oldperiod
    at, used, oldrefill, oldperiod = unpack(FOUR, packed)
    if #packed > 28 or oldrefill ~= refill or oldperiod ~= period or used > capacity then
      return versioned(steppedkind(), packed, now, cost, charge, capacity, refill, period)
    end
  end
  local remaining, retry, reset, s_at, s_used = decidestepped(at, used, 0, now, cost, charge, capacity, refill, period)
  if charge and retry == 0 then
    local state = s_used > 0 and pack(FOUR, s_at, s_used, refill, period) or ''
    return remaining, retry, reset, state, reset, horizon(s_at, ceil(s_used / refill) * period),
      packed and horizon(at, ceil(used / refill) * period)
  end
  return remaining, retry, reset
end

algorithms[2], sizes[2], kinds[2] = steppedtokenbucket, {28, 78}, steppedkind
