-- lost.lua: keeps entries that were lost.
-- KEYS: the hash of them. ARGV: its ttl in milliseconds; then names and values in turn.
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {1}
