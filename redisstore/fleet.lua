-- Keeps which instances of a fleet are alive, and counts them.
--
-- KEYS[1]: the key of the fleet.
-- ARGV[1]: the instance's ID.
-- ARGV[2]: for how many milliseconds it counts as alive; 0: it leaves.
--
-- Returns how many are alive, and 1 if the instance was not known to be. Kept: a sorted set of IDs, by the time until which each counts, in
-- milliseconds since the key was made. It ends with the last of them, so that the rest of its
-- life tells the time: by the clock of the server, also if that keeps TIME from scripts. By those of
-- the callers one that is ahead would forget all others.
local key, id, life = KEYS[1], ARGV[1], tonumber(ARGV[2])

local function last()
  return tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
end

local now, final = 0, last()
if final then
  local left = redis.call('PTTL', key)
  if left < 0 then
    redis.call('DEL', key) -- somebody took its end from it: all will come again
  else
    now = final - left
  end
end

redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))
local new = 0
if life == 0 then
  redis.call('ZREM', key, id)
else
  new = redis.call('ZADD', key, string.format('%.0f', now + life), id)
end
final = last()
if final then
  redis.call('PEXPIRE', key, string.format('%.0f', final - now))
end
return {redis.call('ZCARD', key), new}
