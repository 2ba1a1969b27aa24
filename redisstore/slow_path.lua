-- prolong lets the key of r live as long as changed numbers of its limit need.
local function prolong(r)
  if prolonged then
    local kept = changed[r.k] or values[r.k]
    changed[r.k], expiries = kept:sub(1, -6) .. pack('<I5', prolonged), expiries or {}
    expiries[r.k], prolonged = prolonged, nil
  end
end

-- answer notes the verdict on r, and the state that follows.
local function answer(r, remaining, retry, reset, state, expires)
  prolong(r)
  if state then
    changed[r.k], expiries = state, expiries or {}
    expiries[r.k] = expires or expiries[r.k]
  end
  answers[#answers + 1] = pack('<I7i7I7', remaining, retry, reset)
end

-- with_headroom decides r. With a headroom, r is charged only if cost and headroom fit.
local function with_headroom(r, charge)
  if r.headroom > 0 then
    local cost = r.cost
    r.cost = max(cost, 1) + r.headroom
    local remaining, retry, reset = slow(r, false)
    r.cost = cost
    prolonged = cost ~= 0 and prolonged -- a peek writes nothing
    if retry ~= 0 then
      return remaining, retry, reset
    end
  end
  return slow(r, charge)
end

-- together decides a group: first each request by itself, and if none is refused all again, at
-- the latest of their starts. MGET returns no value of another type, which is found here.
local function together(group)
  local wait, patience, granted, verdicts = 0, MAX, true, {}
  for i, r in ipairs(group) do
    verdicts[i] = {with_headroom(r, false)}
    prolong(r)
    if not values[r.k] and not changed[r.k] and call('EXISTS', KEYS[r.k]) == 1 then
      verdicts[i] = {0, WRONGTYPE, 0}
    end
    local retry = verdicts[i][2]
    if r.charge ~= 'force' then
      granted = granted and (retry >= 0 or retry == NEVER and r.cost == 0) and not r.peeks
    end
    if r.cost > 0 and r.charge ~= 'force' then
      wait, patience = max(wait, retry), min(patience, r.wait)
    end
  end
  granted = granted and wait <= patience
  for i, r in ipairs(group) do
    if r.charge == 'force' then
      answer(r, slow(r, true))
    elseif granted then
      r.after = wait > 0 and r.cost > 0 and r.now + wait or 0
      answer(r, with_headroom(r, true))
    else
      answer(r, spread(verdicts[i], 1, 3))
    end
  end
end

local TIMED, BOOKS, JOINED, group = 4, 8, 16, nil

-- slowly reads the rest of a request, decides it or leaves that to the last of its group, and
-- returns the place of the next request and whether it is of the same group.
slowly = function(place, what, k, l, cost, charge)
  local r = {
    k = k, l = l, cost = cost, charge = charge, peeks = what % 2 == 1, now = clock,
    wait = 0, cancel = 0, headroom = 0, after = 0, grace = servers and 0 or 60000000,
  }
  if what % 8 >= TIMED then
    r.now, place = unpack('<I7', ARGV[2], place)
    r.grace = 60000000 + max(clock - r.now, 0)
  end
  if what % 16 >= BOOKS then
    r.wait, r.cancel, place = unpack('<I7I7', ARGV[2], place)
    if cost >= 0 then -- which cancels nothing
      r.headroom, r.cancel = r.cancel, 0
    end
  end
  if what >= JOINED or group then
    group = group or {}
    group[#group + 1] = r
    if what < JOINED then
      together(group)
      group = nil
    end
  else
    answer(r, with_headroom(r, not r.peeks))
  end
  return place, group ~= nil
end
