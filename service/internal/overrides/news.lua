-- news.lua: returns the entries that have changed since a version.
-- KEYS: as in overrides.lua.
-- ARGV: the version.
-- Returns the version now, 'some' or 'all', and names with their values; '' is deleted.
local now = redis.call('GET', KEYS[2])
if not now then
  return {'', 'all'}
end
local epoch, changes = string.match(now, '^(%w+):(%d+)$')
local known, seen = string.match(ARGV[1], '^(%w+):(%d+)$')
if epoch and epoch == known then
  local missed = changes - seen
  local names = missed > 0 and redis.call('LRANGE', KEYS[3], -missed, -1) or {}
  if #names == missed then
    local answer = {now, 'some'}
    for _, name in ipairs(names) do
      answer[#answer + 1] = name
      answer[#answer + 1] = redis.call('HGET', KEYS[1], name) or ''
    end
    return answer
  end
end
local answer = redis.call('HGETALL', KEYS[1])
table.insert(answer, 1, 'all')
table.insert(answer, 1, now)
return answer
