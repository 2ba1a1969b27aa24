local list = ARGV[2]
for at = 1, #list, 22 do
  local algorithm, capacity, a, b = unpack('<I1I7I7I7', list, at)
  limits[#limits + 1] = {algorithms[algorithm], capacity, a, b}
end
values = call('MGET', spread(KEYS))

local requests, n, place, joined = ARGV[3], 0, 1, false
while place <= #requests do
  local what, k, l, cost = nil, nil, nil, 1
  what, k, l, place = unpack('<I1I3I3', requests, place)
  if what % 4 >= 2 then
    cost, place = unpack('<i7', requests, place)
    what = what - 2
  end
  local state = changed[k]
  if state == nil then
    state = values[k]
  end
  local remaining, retry, reset, expires
  if what == 0 and servers and not joined and state ~= '' then
    local limit = limits[l]
    remaining, retry, reset, state, expires =
      limit[1](state, clock, cost, cost ~= 0, limit[2], limit[3], limit[4])
  end
  if remaining then
    if expires then
      expiries = expiries or {}
      expiries[k] = expires
    end
    if state then
      changed[k] = state
    end
    answers[#answers + 1] = pack('<I7i7I7', remaining, retry, reset)
  elseif slowly then
    place, joined = slowly(place, what, k, l, cost)
  else
    return redis.error_reply('SLOWPATH this state was booked ahead')
  end
end

-- MGET returns no value of another type, so a key without a value is created only if it does not
-- exist. A key that lost its expiry gets it back: the first one written in place is checked.
-- A server at maxmemory refuses all writes but DEL.
local refused, checked = nil, false
for k, state in pairs(changed) do
  local key, expires, done = KEYS[k], expiries and expiries[k], true
  if state == '' then
    done = values[k] and call('DEL', key) or call('EXISTS', key) == 0
  else
    if not expires and not checked then
      checked, expires = true, call('PTTL', key) == -1 and unpack('<I5', state, #state - 4)
    end
    if not values[k] then
      done = redis.pcall('SET', key, state, 'EX', ceil(expires - clock / 1000000), 'NX')
    elseif expires then
      done = redis.pcall('SET', key, state, 'EX', ceil(expires - clock / 1000000))
    else
      done = redis.pcall('SETRANGE', key, '0', state) -- at less than half of the cost
    end
  end
  local err = type(done) == 'table' and done.err
  if err and not err:find('OOM command', 1, true) then
    return redis.error_reply((err:gsub('^@user_script: %d+: %-', '')))
  elseif err or not done then
    refused = refused or {}
    refused[k] = err and NOROOM or WRONGTYPE
  end
end

place = 1
while refused and place <= #requests do
  local what, k = unpack('<I1I3', requests, place)
  n, place = n + 1, place + 7 + (what % 4 >= 2 and 7 or 0) + (what % 8 >= 4 and 7 or 0)
    + (what % 16 >= 8 and 14 or 0)
  answers[n] = refused[k] and pack('<I7i7I7', 0, refused[k], 0) or answers[n]
end
if slowly then
  answers[#answers + 1] = pack('<I7', clock)
end
return table.concat(answers)
