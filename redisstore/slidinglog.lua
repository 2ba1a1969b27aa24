-- slidinglog decides by the grants of the last window, kept in order of time:
-- those at times t with now - t < period. Twin of slidinglog.go.
--
-- Kept: the period they were counted by, their total, and for each its time and
-- count, in 7 and 2 bytes.
local HEAD, HEADSIZE = '<I7I2', 9
local ENTRY, ENTRYSIZE = '<I7I2', 9

local function lastat(packed)
  return (unpack(ENTRY, packed, #packed - ENTRYSIZE + 1))
end

-- expired finds where the entries begin that have not left the window at now,
-- and how many grants they hold in all.
local function expired(packed, first, used, now, period)
  while first < #packed do
    local at, count = unpack(ENTRY, packed, first)
    if now - at < period then
      break
    end
    used = used - count
    first = first + ENTRYSIZE
  end
  return first, used
end

-- slidinglogwait is the time until grants of need in all have left the window.
local function slidinglogwait(packed, first, need, period, now)
  while first < #packed do
    local at, count = unpack(ENTRY, packed, first)
    need = need - count
    if need <= 0 then
      return period - (now - at)
    end
    first = first + ENTRYSIZE
  end
  return 0
end

-- record gives the entries from first on with a grant at now appended, or with
-- the latest grants removed if cost is negative.
local function record(packed, first, now, cost)
  local last = #packed
  while cost < 0 and last > first do
    local at, count = unpack(ENTRY, packed, last - ENTRYSIZE + 1)
    last = last - ENTRYSIZE
    if count > -cost then
      return packed:sub(first, last) .. pack(ENTRY, at, count + cost)
    end
    cost = cost + count
  end
  if cost <= 0 then
    return packed:sub(first, last)
  end
  if last > first then
    local at, count = unpack(ENTRY, packed, last - ENTRYSIZE + 1)
    if at == now then
      cost = cost + count
      last = last - ENTRYSIZE
    end
  end
  return packed:sub(first, last) .. pack(ENTRY, now, cost)
end

local function slidinglog(packed, now, cost, charge, capacity, period)
  local skew, used, first, adopted = 0, 0, HEADSIZE + 1, false
  if packed then
    local oldperiod
    oldperiod, used = unpack(HEAD, packed)
    skew = max(lastat(packed) - now, 0)
    now = now + skew
    adopted = oldperiod ~= period
    if adopted then
      first, used = expired(packed, first, used, now, oldperiod)
    end
  else
    packed = pack(HEAD, 0, 0)
  end
  local s_first, s_used = first, used
  first, used = expired(packed, first, used, now, period)
  local ask = asked(cost, capacity)
  local retry, reset, state = 0, 0, nil
  if ask > capacity then
    retry = NEVER
  elseif used + ask > capacity then
    retry = skew + slidinglogwait(packed, first, used + ask - capacity, period, now)
  elseif charge then
    used = max(used + ask, 0)
    packed = pack(HEAD, period, used) .. record(packed, first, now, ask)
    state = used > 0 and packed or ''
  end
  if used > 0 then
    reset = skew + (period - (now - lastat(packed)))
  end
  if adopted and not state then
    state = s_used > 0 and pack(HEAD, period, s_used) .. packed:sub(s_first) or ''
  end
  return max(capacity - used, 0), retry, reset, state
end

algorithms['5'], sizes['5'] = slidinglog, 18
