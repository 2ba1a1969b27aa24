-- What a program does that follows the Redis documentation's guide, in words of our own:
-- the time is the caller's, in seconds; each call writes; no expiry is set.
--
-- KEYS[1]: the hash. ARGV: capacity, tokens that arrive, the seconds between, the time.
local burst, amount, every, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'last_refill')
local tokens, since = tonumber(state[1]), tonumber(state[2])
if not tokens then
  tokens, since = burst, now
end
local ticks = math.floor((now - since) / every)
if ticks > 0 then
  tokens, since = math.min(burst, tokens + ticks * amount), since + ticks * every
end
local granted = 0
if tokens >= 1 then
  granted, tokens = 1, tokens - 1
end
redis.call('HMSET', KEYS[1], 'tokens', tokens, 'last_refill', since)
return {granted, tokens}
