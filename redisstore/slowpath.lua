-- slow decides what is rare: a request that has a time, may be booked ahead or cancels, and any
-- request on a state that was booked. BOOKED is added to the tag of such a state. Twin of
-- booking.go.
local BOOKED = 8

local function bookedstate(state)
  return string.char(state:byte() + BOOKED) .. state:sub(2)
end

-- refundahead is a refund while time stands at the start at, and stays there.
local function refundahead(limit, value, at, r, charge)
  local decide, capacity, a, b = limit[1], limit[2], limit[3], limit[4]
  local _, _, reset, state, expires = decide(value, at, 0, false, capacity, a, b)
  if not reset then
    return 0, BADSTATE, 0
  elseif r.cancel > 0 and r.cancel ~= at then
    return 0, NEVER, reset + at - r.now
  end
  keep = true
  _, _, reset, state, expires = decide(value, at, r.cost, charge, capacity, a, b)
  keep = false
  return 0, 0, reset + at - r.now, state and bookedstate(state), expires
end

local function slow(r, charge)
  local limit, value = limits[r.l], changed[r.k]
  local decide, capacity, a, b = limit[1], limit[2], limit[3], limit[4]
  local ahead, at, now, _ = false, 0, r.now, nil
  if value == nil then
    value = values[r.k]
  elseif value == '' then
    value = nil
  end
  charge, grace = charge and r.cost ~= 0, r.grace
  if value and #value > 8 and value:byte() > BOOKED then
    at = unpack('<I7', value, 2)
    ahead, value = at > now, string.char(value:byte() - BOOKED) .. value:sub(2)
  end
  if ahead and r.cost < 0 then
    return refundahead(limit, value, at, r, charge)
  end
  local plain = not ahead and (r.wait == 0 or r.cost <= 0)
  local from = ahead and at or now
  local remaining, retry, reset, state, expires = decide(value, from, r.cost, plain and charge, capacity, a, b)
  if not remaining then
    return 0, BADSTATE, 0
  elseif plain then
    return remaining, retry, reset, state, expires
  end
  local start = max(from + retry, r.after)
  if retry == NEVER or start > MAX then
    retry = NEVER
  else
    retry = start - now
  end
  if not charge or retry == NEVER or retry > r.wait then
    return ahead and 0 or remaining, retry, reset + from - now
  end
  remaining, _, reset, state, expires = decide(value, start, r.cost, true, capacity, a, b)
  if retry > 0 then
    remaining, reset, state = 0, reset + retry, bookedstate(state)
  end
  return remaining, retry, reset, state, expires
end

-- answer notes the verdict on r, and the state that follows.
local function answer(r, remaining, retry, reset, state, expires)
  if state then
    changed[r.k], expiries = state, expiries or {}
    expiries[r.k] = expires or expiries[r.k]
  end
  answers[#answers + 1] = pack('<I7i7I7', remaining, retry, reset)
end

-- together decides a group: first each request by itself, and if none is refused all again, at
-- the latest of their starts.
local function together(group)
  local wait, patience, granted, verdicts = 0, MAX, true, {}
  for i, r in ipairs(group) do
    verdicts[i] = {slow(r, false)}
    local retry = verdicts[i][2]
    granted = granted and retry >= 0 and not r.peeks
    if r.cost > 0 then
      wait, patience = max(wait, retry), min(patience, r.wait)
    end
  end
  granted = granted and wait <= patience
  for i, r in ipairs(group) do
    if granted then
      r.after = wait > 0 and r.cost > 0 and r.now + wait or 0
      answer(r, slow(r, true))
    else
      answer(r, spread(verdicts[i], 1, 3))
    end
  end
end

local TIMED, BOOKS, JOINED, group = 4, 8, 16, nil

-- slowly reads the rest of a request, decides it or leaves that to the last of its group, and
-- returns the place of the next request and whether it is of the same group.
slowly = function(place, what, k, l, cost)
  local r = {k = k, l = l, cost = cost, peeks = what % 2 == 1, now = clock, wait = 0, cancel = 0, after = 0,
    grace = servers and 0 or 60000000}
  if what % 8 >= TIMED then
    r.now, place = unpack('<I7', ARGV[3], place)
    r.grace = 60000000 + max(clock - r.now, 0)
  end
  if what % 16 >= BOOKS then
    r.wait, r.cancel, place = unpack('<I7I7', ARGV[3], place)
  end
  if what >= JOINED or group then
    group = group or {}
    group[#group + 1] = r
    if what < JOINED then
      together(group)
      group = nil
    end
  else
    answer(r, slow(r, not r.peeks))
  end
  grace = 0
  return place, group ~= nil
end
