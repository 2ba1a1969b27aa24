-- action_log.lua: keeps the text of an act, if the one that is kept now is the expected one.
-- KEYS: the hash of acts.
-- ARGV: id, expected text ('' none), text ('' deletes), most acts, ttl in milliseconds.
-- Returns 1 if it was kept, 0 if another text is there.
local hash, id, text = KEYS[1], ARGV[1], ARGV[3]

if (redis.call('HGET', hash, id) or '') ~= ARGV[2] then
  return {0}
end
if text == '' then
  redis.call('HDEL', hash, id)
  return {1}
end
redis.call('HSET', hash, id, text)
redis.call('PEXPIRE', hash, ARGV[5])

-- Ids sort by time.
local extra = redis.call('HLEN', hash) - tonumber(ARGV[4])
if extra > 0 then
  local ids = redis.call('HKEYS', hash)
  table.sort(ids)
  for i = 1, extra do
    redis.call('HDEL', hash, ids[i])
  end
end
return {1}
