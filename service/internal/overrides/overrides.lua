-- overrides.lua: puts or deletes one entry, and writes a new version if something changed.
-- KEYS: the hash of entries, its version.
-- ARGV: version, field, value ('' deletes), ttl in milliseconds (0: without end), most fields,
-- the value that the field must have ('' none, '*' any); then fields that have expired, each with
-- its value.
-- Returns 1 if it changed, 0 if there was nothing to delete, -1 if the hash is full, -2 if the
-- field has another value.
local hash, version_key = KEYS[1], KEYS[2]
local version, field, value = ARGV[1], ARGV[2], ARGV[3]
local ttl, max = tonumber(ARGV[4]), tonumber(ARGV[5])

if ARGV[6] ~= '*' and (redis.call('HGET', hash, field) or '') ~= ARGV[6] then
  return -2
end

for i = 7, #ARGV, 2 do
  if redis.call('HGET', hash, ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', hash, ARGV[i])
  end
end

if value == '' then
  local deleted = redis.call('HDEL', hash, field)
  if redis.call('EXISTS', hash) == 0 then
    redis.call('DEL', version_key)
  elseif deleted == 1 then
    redis.call('SET', version_key, version, 'KEEPTTL')
  end
  return deleted
end

if redis.call('HEXISTS', hash, field) == 0 and redis.call('HLEN', hash) >= max then
  return -1
end

-- Both keys expire with the override that ends last, unless one is without end.
local left = redis.call('PTTL', hash) -- -2: no hash yet; -1: one is without end
redis.call('HSET', hash, field, value)
redis.call('SET', version_key, version)
if ttl == 0 or left == -1 then
  redis.call('PERSIST', hash)
else
  ttl = math.max(ttl, left)
  redis.call('PEXPIRE', hash, ttl)
  redis.call('PEXPIRE', version_key, ttl)
end
return 1
