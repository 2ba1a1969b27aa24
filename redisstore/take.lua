local list = ARGV[1]
for at = 1, #list, 22 do
  local algorithm, capacity, a, b = unpack('<I1I7I7I7', list, at)
  limits[#limits + 1] = {algorithms[algorithm], capacity, a, b}
end
values = call('MGET', spread(KEYS))

local requests, n, place, joined = ARGV[2], 0, 1, false
while place <= #requests do
  local what, l, cost, charge = nil, nil, 1, true
  what, k, l, place = unpack('<I1I3I3', requests, place)
  if what % 4 >= 2 then
    cost, place = unpack('<i7', requests, place)
    what, charge = what - 2, cost ~= 0
    if what >= 32 then -- charged whether or not it fits
      what, charge = what - 32, 'force'
    end
  end
  local state = changed[k] or values[k]
  local remaining, retry, reset, expires
  if what == 0 and servers and not joined and state ~= '' then
    local limit = limits[l]
    remaining, retry, reset, state, expires =
      limit[1](state, clock, cost, charge, limit[2], limit[3], limit[4])
  end
  if remaining then
    if prolonged then
      state = state or (changed[k] or values[k]):sub(1, -6) .. pack('<I5', prolonged)
      expires, prolonged = expires or prolonged, nil
    end
    if expires then
      expiries = expiries or {}
      expiries[k] = expires
    end
    if state then
      changed[k] = state
    end
    answers[#answers + 1] = pack('<I7i7I7', remaining, retry, reset)
  elseif slowly then
    place, joined = slowly(place, what, k, l, cost, charge)
  else
    return redis.error_reply('SLOWPATH this state was booked ahead')
  end
end

