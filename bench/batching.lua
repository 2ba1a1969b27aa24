-- Decides by GCRA for any number of keys under one limit, with little work for each:
-- the theoretical arrival time is one double of 8 bytes, no number is turned into a
-- string, and a denial writes nothing.
--
-- ARGV: the microseconds in which a token comes back, those in which the bucket fills,
-- and the milliseconds that a key is kept.
-- Returns a 1 or a 0 for each key, in one string.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local every, full, life = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local answers = {}
for i, key in ipairs(KEYS) do
  local packed = redis.call('GET', key)
  local due = packed and math.max(struct.unpack('d', packed), now) or now
  due = due + every
  if due - now > full then
    answers[i] = '0'
  else
    redis.call('SET', key, struct.pack('d', due), 'PX', life)
    answers[i] = '1'
  end
end
return table.concat(answers)
