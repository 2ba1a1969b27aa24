-- news.lua: returns the entries that have changed since a version.
-- KEYS: as in change.lua.
-- ARGV: the version.
-- Returns the version now, 'some' or 'all', and names with their values; '' is deleted.
local now = redis.call('GET', KEYS[2]) or ''
local changes = string.match(now, '^(%d+):')
local seen, text = string.match(ARGV[1], '^(%d+):(%w+)$')
if changes and seen and tonumber(changes) >= tonumber(seen) then
  -- The first one is known. If it has another text, a failover has lost the one that was read.
  local missed = changes - seen
  local names = redis.call('LRANGE', KEYS[3], -missed - 1, -1)
  if #names == missed + 1 and string.find(names[1], text .. ' ', 1, true) == 1 then
    local answer = {now, 'some'}
    for i = 2, #names do
      local name = string.sub(names[i], #text + 2)
      answer[#answer + 1] = name
      answer[#answer + 1] = redis.call('HGET', KEYS[1], name) or ''
    end
    return answer
  end
end
local answer = redis.call('HGETALL', KEYS[1])
if now == '' and answer[1] then
  now = '?' -- Redis has lost the version: all is read again until a change writes one
end
table.insert(answer, 1, 'all')
table.insert(answer, 1, now)
return answer
