-- Keeps which instances of a fleet are alive, and counts them.
--
-- KEYS[1]: the key of the fleet.
-- ARGV[1]: the instance's ID.
-- ARGV[2]: the time in microseconds, or 0 for the clock of this server.
-- ARGV[3]: for how many microseconds it counts as alive; 0: it leaves.
--
-- Returns how many are alive, and 1 if the instance was not known to be. Kept: a sorted set of IDs, by the time until which each counts.
local key, id, now, life = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if now == 0 then
  local time = redis.pcall('TIME')
  if time.err then
    return redis.error_reply('NOTIME ' .. time.err)
  end
  now = time[1] * 1000000 + time[2]
end

redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))
local new = 0
if life == 0 then
  redis.call('ZREM', key, id)
else
  new = redis.call('ZADD', key, string.format('%.0f', now + life), id)
end
local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
if last then
  redis.call('PEXPIRE', key, math.ceil((tonumber(last) - now) / 1000))
end
return {redis.call('ZCARD', key), new}
