-- Deletes the keys, and returns how many of them this server had. With 32 bits, its struct library
-- keeps the lower half of a time: then it returns an error.
--
-- KEYS: the keys of a probe.
local MAX = 9007199254740991
if struct.unpack('<I7', struct.pack('<I7', MAX)) ~= MAX then
  return redis.error_reply('BITS the struct library of this server loses part of each time')
end
return {redis.call('DEL', unpack(KEYS))}
