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
    remaining, retry, reset, state, expires = limit[1](state, clock, cost, cost ~= 0, limit[2], limit[3], limit[4])
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

-- A key that has no value is created only if it is not there: MGET returns no value of another
-- type. A key whose expiry was lost gets it back: the first one that is written in place is
-- looked at. A server without room refuses the first write, and so all.
local foreign, looked = nil, false
for k, state in pairs(changed) do
  local key, expires, done = KEYS[k], expiries and expiries[k], true
  if state == '' then
    done = call('DEL', key)
  else
    if not expires and not looked then
      looked, expires = true, call('TTL', key) == -1 and unpack('<I5', state, #state - 4)
    end
    if not values[k] then
      done = redis.pcall('SET', key, state, 'EX', ceil(expires - clock / 1000000), 'NX')
    elseif expires then
      done = redis.pcall('SET', key, state, 'EX', ceil(expires - clock / 1000000))
    else
      done = redis.pcall('SETRANGE', key, '0', state) -- at less than half of the cost
    end
  end
  if not done then
    foreign = foreign or {}
    foreign[k] = true
  elseif done ~= true and type(done) == 'table' and done.err then
    return redis.error_reply((done.err:gsub('^@user_script: %d+: %-', '')))
  end
end

place = 1
while foreign and place <= #requests do
  local what, k = unpack('<I1I3', requests, place)
  n, place = n + 1, place + 7 + (what % 4 >= 2 and 7 or 0) + (what % 8 >= 4 and 7 or 0) + (what % 16 >= 8 and 14 or 0)
  answers[n] = foreign[k] and pack('<I7i7I7', 0, WRONGTYPE, 0) or answers[n]
end
if slowly then
  answers[#answers + 1] = pack('<I7', clock)
end
return table.concat(answers)
