-- Writes what has changed, so that every key expires: a state says until when its key lives at
-- least, and one that needs longer sets a new expiry, a quarter of the wait later.
--
-- MGET returns no value of another type, so a key without a value is created only if it does not
-- exist. A key that lost its expiry gets it back: the first one written in place is checked.
-- A server at maxmemory refuses all writes but DEL; a denial stands without its longer life.
local refused, checked = nil, false
for k = 1, #KEYS do
  local state, key, done = changed[k], KEYS[k], true
  local expires = expiries and expiries[k]
  if state == '' then
    done = values[k] and call('DEL', key) or call('EXISTS', key) == 0
  elseif state then
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
  local err = done ~= true and type(done) == 'table' and done.err
  if err and not err:find('OOM command', 1, true) then
    return redis.error_reply((err:gsub('^@user_script: %d+: %-', '')))
  elseif not done or err and state:sub(1, -6) ~= (values[k] or ''):sub(1, -6) then
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
