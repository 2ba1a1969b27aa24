-- Decides one plain request, as batch.lua, take.lua and write.lua decide many. What is rare it
-- leaves to them, and writes nothing: SLOWPATH if the value is no state of this limit or was booked
-- ahead, if the numbers of the limit have changed so that the key has to live longer, or if
-- the server refuses to write.
--
-- KEYS[1]: the key.
-- ARGV[1]: '<I7I7I7i7I1': the capacity and two more numbers of the limit, the cost, and 1 if it
-- is charged whether or not it fits.
--
-- Returns '<I7i7I7' as for a batch. A key that lost its expiry gets it back: one write in place of
-- sixteen checks it, by the clock.
local key, call = KEYS[1], redis.pcall
local value = call('GET', key) or nil -- of another type, a table: no state
local capacity, a, b, cost, force = unpack('<I7I7I7i7I1', ARGV[1])
local charge = force == 1 and 'force' or cost ~= 0
local remaining, retry, reset, state, expires = decide(value, clock, cost, charge, capacity, a, b)
local done = remaining and not prolonged
if not done or not state then -- nothing is written
elseif state == '' then
  done = not value or call('DEL', key) == 1
else
  if not expires and clock % 16 == 0 and call('PTTL', key) == -1 then
    expires = unpack('<I5', state, #state - 4)
  end
  if expires then
    done = call('SET', key, state, 'EX', math.ceil(expires - clock / 1000000)).ok
  else
    done = call('SETRANGE', key, '0', state) == #value
  end
end
if not done then
  return redis.error_reply('SLOWPATH this request is left to the script of a batch')
end
return pack('<I7i7I7', remaining, retry, reset)
