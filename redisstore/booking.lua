-- slow decides what is rare: a request that has a time, may be booked ahead or names a start, and
-- any request on a state that was booked. BOOKED is added to the tag of such a state, or LATE if it
-- was booked behind a start that was ahead: a cancel leaves its time. Twin of booking.go and
-- cancel.go.
local BOOKED, LATE = 8, 24

local function marked(state, mark)
  return string.char(state:byte() + mark) .. state:sub(2)
end

-- scaled reports whether a state is of a bucket with other numbers.
local function scaled(state, capacity, a, b)
  local tag = state:byte()
  return tag == 1 and unpack('<I7', state, 16) ~= capacity * b
    or tag == 2 and state:sub(23, 43) ~= pack('<I7I7I7', capacity, a, b)
end

-- before returns a state whose last start is cancelled, and whose tokens have been given back: time
-- stands at now, or as far back as the state shows what was used. Nothing else was booked ahead.
-- The state at later times is the same. A calendar stays where it is.
local function before(state, now, capacity, a, b)
  local tag, at, used = state:byte(), unpack('<I7', state, 2), unpack('<I7', state, 9)
  if tag == 1 then -- to where it was empty
    local left = max(now, at - floor((capacity * b - used) / a))
    return left, pack('<I1I7I7', tag, left, used + (at - left) * a) .. state:sub(16)
  elseif tag == 2 then
    local step = unpack('<I7', state, 16)
    local steps = min(floor((capacity - used) / a), ceil(max(step - now, 0) / b))
    step, used = step - steps * b, used + steps * a
    at = max(now, step)
    return at, pack('<I1I7I7I7', tag, at, used, step) .. state:sub(23)
  elseif tag == 3 or tag == 4 then
    at = max(now, at - at % a)
  elseif tag == 5 then
    at = now
    if #state > 16 then
      local first, count = unpack('<I7I2', state, 17)
      at = max(now, (unpack('<I7', state, #state - 8)))
      if count == 0 then -- before that, what has been dropped counts
        at = max(at, first + a)
      end
    end
  end
  return at, pack('<I1I7', tag, at) .. state:sub(9)
end

-- without returns a log without n tokens of the grant at a time, or without all of them, and its
-- expiry.
local function without(log, at, n)
  for place = 17, #log, 9 do
    local t, count = unpack('<I7I2', log, place)
    if t == at and count > 0 then
      n = min(n, count)
      log = log:sub(1, 8) .. pack('<I3', unpack('<I3', log, 9) - n) .. log:sub(12, place - 1)
        .. (n < count and pack('<I7I2', t, count - n) or '') .. log:sub(place + 9)
      break
    end
  end
  return log, (unpack('<I5', log, 12))
end

-- refundlate takes a grant out of the window or the entry that has it. It leaves the time at.
local function refundlate(limit, value, mark, at, now, r, charge)
  local decide, capacity, a, b = limit[1], limit[2], limit[3], limit[4]
  local n, start, state, expires = -r.cost, at - at % a, value, nil
  local remaining, _, reset = decide(value, now, r.cost, false, capacity, a, b)
  if not remaining then
    return 0, BADSTATE, 0
  elseif not charge then -- nothing changes
  elseif decide == algorithms[5] then
    state, expires = without(value, r.cancel, n)
  elseif r.cancel > at then -- the grant is not in the state any more
  elseif r.cancel >= start then
    state = value:sub(1, 8) .. pack('<I7', max(unpack('<I7', value, 9) - n, 0)) .. value:sub(16)
  elseif r.cancel >= start - a then
    state = value:sub(1, 15) .. pack('<I7', max(unpack('<I7', value, 16) - n, 0)) .. value:sub(23)
  end
  remaining, _, reset = decide(state, now, r.cost, false, capacity, a, b)
  if now > r.now then
    remaining, reset = 0, reset + (now - r.now)
  elseif reset == 0 then
    return remaining, 0, reset, charge and ''
  end
  return remaining, 0, reset, charge and marked(state, mark), expires
end

-- refundahead is a refund while time stands at the start at, and stays there: a refund gives
-- back tokens, not time. A cancel gives back its start as well, unless another was ahead of it.
local function refundahead(limit, value, mark, at, r, charge)
  local decide, capacity, a, b = limit[1], limit[2], limit[3], limit[4]
  local _, _, reset, state, expires = decide(value, at, 0, false, capacity, a, b)
  if not reset then
    return 0, BADSTATE, 0
  end
  _, _, reset, state, expires =
    decide(value, at, r.cost, charge, capacity, a, b, r.grace, r.now)
  if r.cancel <= r.now or not charge or mark == LATE or scaled(value, capacity, a, b) then
    return 0, 0, reset + (at - r.now), state and marked(state, mark), expires
  end
  local remaining
  at, state = before(state, r.now, capacity, a, b)
  remaining, _, reset = decide(state, at, 0, false, capacity, a, b)
  if at > r.now then
    return 0, 0, reset + (at - r.now), marked(state, mark), expires
  end
  return remaining, 0, reset, state, expires
end

-- forceahead charges r while time stands at the start at, so that it does not fit. A cancel of the
-- last start leaves time where it is.
local function forceahead(limit, value, at, r)
  local decide, capacity, a, b = limit[1], limit[2], limit[3], limit[4]
  local _, _, reset, state, expires =
    decide(value, at, r.cost, 'force', capacity, a, b, r.grace)
  if not reset or at > MAX then
    return 0, BADSTATE, 0
  end
  local remaining, retry
  remaining, retry, reset = decide(state, at, r.cost, false, capacity, a, b)
  retry = retry == NEVER and NEVER or retry + (at - r.now)
  return min(remaining, 0), retry, reset + (at - r.now), marked(state, LATE), expires
end

local function slow(r, charge)
  local limit, value = limits[r.l], changed[r.k]
  local decide, capacity, a, b = limit[1], limit[2], limit[3], limit[4]
  local ahead, at, now, mark = false, 0, r.now, 0
  if value == nil then
    value = values[r.k]
  elseif value == '' then
    value = nil
  end
  charge = charge and r.charge
  if value and #value > 8 then
    at = unpack('<I7', value, 2)
    mark = value:byte() - value:byte() % 8
    if mark == BOOKED or mark == LATE then
      ahead, value = at > now, marked(value, -mark)
    end
  end
  local from = ahead and at or now
  local late = r.cancel > 0 and r.cancel <= now
  if late and value and (decide == algorithms[4] or decide == algorithms[5]) then
    return refundlate(limit, value, mark, at, from, r, charge)
  elseif late and value and (decide == algorithms[3] or decide == algorithms[6]) then
    -- a grant at that start counts now, or its window is over
    local grant = pack('<I1I7I7I5', value:byte(), r.cancel, 1, 0)
    local _, _, reset = decide(grant, max(from, at), 0, false, capacity, a, b)
    charge = charge and reset ~= 0 and r.cancel <= at
  elseif r.cancel > 0 and (at > r.cancel or not late and at < r.cancel) then -- it is not the last
    local remaining, _, reset = decide(value, from, 0, false, capacity, a, b)
    return ahead and 0 or remaining or 0, reset and NEVER or BADSTATE, (reset or 0) + (from - now)
  end
  if ahead and r.cost < 0 then
    return refundahead(limit, value, mark, at, r, charge)
  elseif ahead and charge == 'force' then
    return forceahead(limit, value, at, r)
  end
  local plain = not ahead and (r.wait == 0 or r.cost <= 0)
  local remaining, retry, reset, state, expires =
    decide(value, from, r.cost, plain and charge, capacity, a, b, r.grace)
  if not remaining or from > MAX or retry > MAX then
    return 0, BADSTATE, 0
  elseif plain then
    return remaining, retry, reset, state, expires
  end
  local own = from + retry
  local start = max(own, r.after)
  if retry == NEVER or start > MAX then
    retry = NEVER
  else
    retry = start - now
  end
  if ahead then
    remaining = 0
  end
  if retry <= r.wait and decide == algorithms[6] -- no start is after the bounds of a calendar
      and own >= a + (floor(b / 67108864) + b % 67108864) * 1000000 then
    retry = NEVER
  end
  if retry == NEVER or retry > r.wait then
    return remaining, retry, reset + (from - now)
  end
  mark = ahead and LATE or BOOKED
  local left, full, later, next, renewed = decide(value, start, r.cost, charge, capacity, a, b,
    r.grace, ahead and now or max(now, at))
  if full == NEVER then
    return 0, NEVER, later + retry
  elseif not charge then
    return remaining, retry, reset + (from - now)
  elseif retry > 0 and at <= start then -- else the clock stepped back
    left, next = 0, marked(next, mark)
  end
  return left, retry, later + retry, next, renewed
end
