-- slidinglog decides by the grants of the last window, kept in order of time: those at times
-- t with now - t < period. The state has their total, and for each its time and count, in 9
-- bytes. Twin of slidinglog.go.
local HEADSIZE, ENTRYSIZE = 15, 9

-- slidinglogwait is the time until grants of need in all have left the window.
local function slidinglogwait(state, first, need, period, now)
  local at, count
  repeat
    at, count, first = unpack('<I7I2', state, first)
    need = need - count
  until need <= 0 or first > #state
  return at + period - now
end

-- unrecord returns the entries without the latest grants of cost in all.
local function unrecord(state, first, cost)
  local last = #state
  while cost > 0 and last > first do
    local at, count = unpack('<I7I2', state, last - ENTRYSIZE + 1)
    last = last - ENTRYSIZE
    if count > cost then
      return state:sub(first, last) .. pack('<I7I2', at, count - cost)
    end
    cost = cost - count
  end
  return state:sub(first, last)
end

-- record returns the entries with a grant at now appended.
local function record(state, first, now, cost)
  local last = #state
  if last > first then
    local at, count = unpack('<I7I2', state, last - ENTRYSIZE + 1)
    if at == now then
      last, cost = last - ENTRYSIZE, cost + count
    end
  end
  return state:sub(first, last) .. pack('<I7I2', now, cost)
end

local function slidinglog(state, now, cost, charge, capacity, period)
  local at, used, expires = 0, 0, 0
  if state then
    if #state < HEADSIZE or (#state - HEADSIZE) % ENTRYSIZE ~= 0 then
      return
    end
    local tag
    tag, at, used, expires = unpack('<I1I7I2I5', state)
    if tag ~= 5 then
      return
    end
  else
    state = ''
  end
  local skew, first = 0, HEADSIZE + 1
  if at > now then
    now, skew = at, at - now
  end
  while first < #state do
    local t, count = unpack('<I7I2', state, first)
    if now - t < period then
      break
    end
    used, first = used - count, first + ENTRYSIZE
  end
  local ask = cost == 0 and 1 or max(cost, -capacity)
  local retry, reset, entries = 0, 0, nil
  if ask > capacity then
    retry, charge = NEVER, false
  elseif ask > 0 and used + ask > capacity then
    retry, charge = skew + slidinglogwait(state, first, used + ask - capacity, period, now), false
  elseif charge then
    used = max(used + ask, 0)
  end
  if used > 0 and charge and cost > 0 then
    reset = skew + period
  elseif used > 0 then
    reset = skew + slidinglogwait(state, first, used, period, now)
  end
  local remaining = max(capacity - used, 0)
  if not charge then
    return remaining, retry, reset
  elseif used == 0 and not keep then
    return remaining, retry, reset, ''
  end
  entries = ask > 0 and record(state, first, now, ask) or unrecord(state, first, -ask)
  local till = (now + reset - skew + grace) / 1000000
  expires = max(expires, ceil(till + reset / 4000000) + 1)
  return remaining, retry, reset, pack('<I1I7I2I5', 5, now, used, expires) .. entries, expires
end

algorithms[5] = slidinglog
