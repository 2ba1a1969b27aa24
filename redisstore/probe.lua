-- Returns how many of the keys exist on this server, unless its struct library loses part of a time:
-- with 32 bits, it keeps the lower half.
--
-- KEYS: the keys of a probe.
local MAX = 9007199254740991
if struct.unpack('<I7', struct.pack('<I7', MAX)) ~= MAX then
  return redis.error_reply('BITS the struct library of this server loses part of each time')
end
return {redis.call('EXISTS', unpack(KEYS))}
