-- slidinglog decides by the grants of the last window, kept in order of time: those at times
-- t with now - t < period. The state has the total of those it keeps, and for each its time and
-- count, in 9 bytes. Twin of sliding_log.go.
local HEADSIZE, ENTRYSIZE, MAXLOG, MAXBOOKED = 16, 9, 65535, 131070

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

-- forget returns the entries without the oldest grants of n in all.
local function forget(state, first, n)
  while n > 0 and first < #state do
    local at, count = unpack('<I7I2', state, first)
    first = first + ENTRYSIZE
    if count > n then
      return pack('<I7I2', at, count - n) .. state:sub(first)
    end
    n = n - count
  end
  return state:sub(first)
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

local function slidinglog(state, now, cost, charge, capacity, period, _, grace, since)
  local tag, at, used, expires = 5, 0, 0, 0
  if state then
    if #state < HEADSIZE or (#state - HEADSIZE) % ENTRYSIZE ~= 0 then
      return
    end
    tag, at, used, expires = unpack('<I1I7I3I5', state)
    if tag ~= 5 then
      return
    end
  else
    state = ''
  end
  local skew, first = at > now and at - now or 0, HEADSIZE + 1
  now = now + skew
  local kept, total = first, used
  while first < #state do
    local t, count = unpack('<I7I2', state, first)
    if now - t < period then
      break
    end
    used, first = used - count, first + ENTRYSIZE
    if not since or since - t >= period then
      kept, total = first, used
    end
  end
  if first > #state then -- whatever it counted
    used = 0
  end
  if kept > #state then
    total = 0
  end
  local ask = cost == 0 and 1 or cost
  local retry, reset, entries = 0, 0, state
  local toolong = since and total + ask > MAXBOOKED
  if ask > 0 and (ask > capacity - used or toolong) then
    charge = charge == 'force'
    if charge then -- the oldest beyond twice the capacity are forgotten
      local most = math.max(math.min(2 * capacity, MAXLOG), used)
      local n = math.min(ask, most)
      entries = record(forget(state, first, used + n - most), 1, now, n)
      used, first = math.min(used + n, most), 1
      total = used
    end
    retry = NEVER
    if ask <= capacity and not toolong then
      retry = skew + slidinglogwait(entries, first, used + ask - capacity, period, now)
    end
  elseif charge then
    ask = math.max(ask, -used)
    total, used = total + ask, used + ask
    entries = ask > 0 and record(state, kept, now, ask) or unrecord(state, kept, -ask)
    if since and since < now and (kept > #state or state:sub(kept + 7, kept + 8) ~= '\0\0') then
      -- an entry of no tokens: a cancel does not move time back before since
      entries = pack('<I7I2', math.max(since - period, 0), 0) .. entries
    end
  end
  if used > 0 and #entries >= ENTRYSIZE then
    reset = skew + unpack('<I7', entries, #entries - ENTRYSIZE + 1) + period - now
  end
  local remaining = capacity - used
  if not charge then
    return remaining, retry, reset
  elseif total == 0 and not since then
    return remaining, retry, reset, ''
  end
  local needed = (now + reset - skew + (grace or 0)) / 1000000
  expires = math.max(expires, math.ceil(needed + reset / 4000000) + 1)
  return remaining, retry, reset, pack('<I1I7I3I5', 5, now, total, expires) .. entries, expires
end
