-- slidinglog decides by the grants of the last window, kept in order of time:
-- those at times t with now - t < period. Twin of slidinglog.go.
--
-- Kept: the period and the capacity of the version of the limit that keeps them, their
-- total, and for each its time and count, in 7 and 2 bytes.
local HEAD, HEADSIZE = '<I7I2I2', 11
local ENTRY, ENTRYSIZE = '<I7I2', 9
local MAXLOG = 65535

local function lastat(packed)
  return (unpack(ENTRY, packed, #packed - ENTRYSIZE + 1))
end

-- expired finds where the entries begin that have not left the window at now,
-- and how many grants they hold in all: none if there are none, whatever was counted.
local function expired(packed, first, used, now, period)
  while first < #packed do
    local at, count = unpack(ENTRY, packed, first)
    if now - at < period then
      break
    end
    used = used - count
    first = first + ENTRYSIZE
  end
  return first, first < #packed and used or 0
end

-- slidinglogwait is the time until grants of need in all have left the window, or all that
-- there are.
local function slidinglogwait(packed, first, need, period, now)
  local at, count
  repeat
    at, count = unpack(ENTRY, packed, first)
    need = need - count
    first = first + ENTRYSIZE
  until need <= 0 or first > #packed
  return period - (now - at)
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

-- latest drops the oldest of used grants in packed if there are more than most.
local function latest(packed, used, most)
  local first, over = 1, used - most
  while over > 0 do
    local at, count = unpack(ENTRY, packed, first)
    first = first + ENTRYSIZE
    if count > over then
      return pack(ENTRY, at, count - over) .. packed:sub(first), most
    end
    over = over - count
  end
  return packed:sub(first), min(used, most)
end

-- It is kept by the version with the longest window of those that it was counted by,
-- until that has forgotten all of it: what lies between k_first and first is for that.
local function slidinglog(packed, now, cost, charge, capacity, period)
  local skew, k_used, k_first, adopted = 0, 0, HEADSIZE + 1, false
  local k_period, k_capacity = period, capacity
  if packed then
    k_period, k_capacity, k_used = unpack(HEAD, packed)
    skew = max(lastat(packed) - now, 0)
    now = now + skew
    adopted = k_period < period
    k_first, k_used = expired(packed, k_first, k_used, now, k_period)
    if k_period <= period then
      k_period, k_capacity = period, capacity
    end
  else
    packed = pack(HEAD, 0, 0, 0)
  end
  local first, used = expired(packed, k_first, k_used, now, period)
  local ask = asked(cost, capacity)
  local retry, reset, state, lives = 0, 0, nil, nil
  if ask > capacity then
    retry = NEVER
  elseif ask > 0 and used + ask > capacity then
    retry = skew + slidinglogwait(packed, first, used + ask - capacity, period, now)
  elseif charge then
    if k_used == 0 then
      k_period, k_capacity = period, capacity
    end
    local most = min(max(k_used, k_capacity + capacity), MAXLOG)
    local entries
    entries, k_used = latest(record(packed, k_first, now, ask), max(k_used + ask, 0), most)
    used = max(used + ask, 0)
    if entries == '' then
      used, k_used = 0, 0
    end
    packed = pack(HEAD, k_period, k_capacity, k_used) .. entries
    state = k_used > 0 and packed or ''
    lives = k_used > 0 and skew + (k_period - (now - lastat(packed))) or 0
  end
  if used > 0 then
    reset = skew + (period - (now - lastat(packed)))
  end
  if adopted and not state then
    state = k_used > 0 and pack(HEAD, k_period, k_capacity, k_used) .. packed:sub(k_first) or ''
    lives = reset
  end
  return max(capacity - used, 0), retry, reset, state, lives
end

algorithms[5], sizes[5] = slidinglog, {20}
