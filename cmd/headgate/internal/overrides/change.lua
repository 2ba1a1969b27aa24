-- change.lua: puts or deletes one entry, and notes the names of all entries that it changes.
-- KEYS: the hash of entries, its version, the list of the names that were changed last, the hash of
-- entries that were lost.
-- ARGV: field, value ('' deletes), ttl in milliseconds (0: without end), the most overrides (0: any
-- number), the value that the field must have ('' none, '*' any), a new random text; then fields
-- that have expired, each with its value.
-- Returns 1 if it changed, 0 if there was nothing to delete, -1 if there are too many overrides, -2
-- if the field has another value.
--
-- The version is the number of changes, and the random text of the last one. The list has the text
-- of each change, too: after a failover, the same number may stand for other changes.
local hash, version, list = KEYS[1], KEYS[2], KEYS[3]
local field, value, ttl, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local most_names = 1000

-- An override has a space in its name. A reset has one, too, and begins with @.
local function is_full()
  if most == 0 or redis.call('HLEN', hash) < most then
    return false
  end
  local overrides = 0
  for _, name in ipairs(redis.call('HKEYS', hash)) do
    if string.find(name, ' ', 1, true) and string.sub(name, 1, 1) ~= '@' then
      overrides = overrides + 1
    end
  end
  return overrides >= most
end

local names = {}

local function delete(name)
  local deleted = redis.call('HDEL', hash, name)
  if deleted == 1 then
    names[#names + 1] = name
  end
  return deleted
end

local function put()
  if redis.call('HEXISTS', hash, field) == 0 and is_full() then
    return -1
  end
  local left = redis.call('PTTL', hash) -- -2: no hash yet; -1: one is without end
  redis.call('HSET', hash, field, value)
  names[#names + 1] = field
  if ttl == 0 or left == -1 then
    redis.call('PERSIST', hash)
  else
    redis.call('PEXPIRE', hash, math.max(ttl, left))
  end
  return 1
end

if ARGV[5] ~= '*' and (redis.call('HGET', hash, field) or '') ~= ARGV[5] then
  return {-2}
end
for i = 7, #ARGV, 2 do
  if redis.call('HGET', hash, ARGV[i]) == ARGV[i + 1] then
    delete(ARGV[i])
  end
end
redis.call('HDEL', KEYS[4], field) -- it was changed since, so it is not put back
local outcome
if value == '' then
  outcome = delete(field)
else
  outcome = put()
end
if #names == 0 then
  return {outcome}
end

local left = redis.call('PTTL', hash)
if left ~= -1 then
  left = math.max(left, 2592000000) -- for 30 days, the version says that a deletion was no loss
end
local changes = string.match(redis.call('GET', version) or '', '^(%d+):') or 0
for _, name in ipairs(names) do
  redis.call('RPUSH', list, ARGV[6] .. ' ' .. name)
end
redis.call('LTRIM', list, -most_names, -1)
redis.call('SET', version, string.format('%.0f:%s', changes + #names, ARGV[6]))
-- All expire with the entry that ends last or after 30 days, unless one is without end.
if left == -1 then
  redis.call('PERSIST', list)
else
  redis.call('PEXPIRE', version, left)
  redis.call('PEXPIRE', list, left)
end
return {outcome}
