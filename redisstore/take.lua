local list = ARGV[2]
for at = 1, #list, 22 do
  local algorithm, capacity, a, b = unpack('<I1I7I7I7', list, at)
  limits[#limits + 1] = {algorithms[algorithm], capacity, a, b, algorithm}
end
values = redis.call('MGET', spread(KEYS))

local requests, place, joined = ARGV[3], 1, false
while place <= #requests do
  local what, k, l, cost = nil, nil, nil, 1
  what, k, l, place = unpack('<I1I3I3', requests, place)
  if what % 4 >= 2 then
    cost, place = unpack('<i7', requests, place)
    what = what - 2
  end
  local limit, state = limits[l], changed[k]
  if state == nil then
    state = values[k]
  end
  local remaining, retry, reset, expires
  if what == 0 and servers and not joined and state ~= '' then
    remaining, retry, reset, state, expires = limit[1](state, clock, cost, cost ~= 0, limit[2], limit[3], limit[4])
  end
  if remaining then
    if state then
      changed[k] = state
      expiries[k] = expires or expiries[k]
    end
    n = n + 1
    keyof[n], answers[n] = k, pack('<I7i7I7', remaining, retry, reset)
  elseif slowly then
    place, joined = slowly(place, what, k, l, cost)
  else
    return redis.error_reply('SLOWPATH')
  end
end

-- A key that has no value is created only if it is not there: MGET returns no value of another
-- type. A key whose expiry was lost gets it back: the first one that is written in place is
-- looked at. A server without room refuses the first write, and so all.
local refused, looked = nil, false
for k = 1, #KEYS do
  local state, key, expires, done = changed[k], KEYS[k], expiries[k], nil
  if state and state ~= '' then
    if not expires and not looked then
      looked = true
      expires = redis.call('TTL', key) == -1 and unpack('<I5', state, #state - 4)
    end
    if not values[k] then
      done = redis.pcall('SET', key, state, 'EX', ceil(expires - clock / 1000000), 'NX')
    elseif expires then
      done = redis.pcall('SET', key, state, 'EX', ceil(expires - clock / 1000000))
    else
      done = redis.pcall('SETRANGE', key, '0', state) -- at less than half of the cost
    end
    if not done then
      refused = refused or {}
      refused[k] = WRONGTYPE
    elseif type(done) == 'table' and done.err then
      if not done.err:find('OOM ', 1, true) then
        return redis.error_reply(done.err)
      end
      refused = {}
      for i = 1, n do
        refused[keyof[i]] = changed[keyof[i]] and NOROOM
      end
      break
    end
  elseif state and values[k] then
    redis.call('DEL', key)
  end
end
for i = 1, refused and n or 0 do
  if refused[keyof[i]] then
    answers[i] = pack('<I7i7I7', 0, refused[keyof[i]], 0)
  end
end
if slowly then
  answers[n + 1] = pack('<I7', clock)
end
return table.concat(answers)
