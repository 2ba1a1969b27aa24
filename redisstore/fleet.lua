-- Registers an instance of a fleet, and counts the instances.
--
-- KEYS[1]: the key of the fleet.
-- ARGV[1]: the instance's ID.
-- ARGV[2]: for how many milliseconds it counts from now; 0 removes it.
--
-- Returns how many instances count, 1 if this one was not registered before, when it expires, and
-- when the first of all expires: so it is known whose last heartbeat came before another.
--
-- The key is a sorted set of IDs by the time at which each expires, in milliseconds since the key
-- was made. The key expires with its last ID, so its time to live gives the time by the server's
-- clock, also if the server keeps TIME from scripts. By the clocks of the callers, one that runs
-- ahead would expire all others.
local key, id, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])

local function expiry_of(rank)
  return tonumber(redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')[2])
end

local now, expires_at = 0, expiry_of(-1)
if expires_at then
  local key_ttl = redis.call('PTTL', key)
  if key_ttl < 0 then
    redis.call('DEL', key) -- the key lost its expiry: all instances register again
  else
    now = expires_at - key_ttl
  end
end

redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))
local added = 0
if ttl == 0 then
  redis.call('ZREM', key, id)
else
  added = redis.call('ZADD', key, string.format('%.0f', now + ttl), id)
end
expires_at = expiry_of(-1)
if expires_at then
  redis.call('PEXPIRE', key, string.format('%.0f', expires_at - now))
end
return {redis.call('ZCARD', key), added, now + ttl, expiry_of(0) or 0}
