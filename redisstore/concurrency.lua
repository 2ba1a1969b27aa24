-- Keeps the leases of one key, of which the first to end is first. Twin of leases in
-- concurrency.go.
--
-- KEYS[1]: the key, which is also the channel at which those who wait listen.
-- ARGV[1]: acquire, renew or release.
-- ARGV[2]: the flight's ID of 16 bytes, or nothing to look.
-- ARGV[3]: the time in microseconds, or 0 for the clock of this server.
-- ARGV[4]: the lease in microseconds.
-- ARGV[5]: how many may be in flight.
-- ARGV[6]: 1 if the caller wants to be told when a flight is given back.
--
-- Returns whether the flight is held (was, of a release), how many are in flight, and
-- the microseconds until a retry (0 if it is granted).
--
-- Kept: a byte that is 1 if somebody waits, and 23 bytes for each lease: its ID, and the
-- time of its end as a whole number of 7 bytes.
local max, min, ceil, floor = math.max, math.min, math.ceil, math.floor
local pack, unpack = struct.pack, struct.unpack
local sub, find = string.sub, string.find

local MAX = 9007199254740991
local SIZE = 23

-- As in take.lua: what has ended is kept a second longer, or a minute where the time was
-- the caller's.
local SERVERGRACE, CALLERGRACE = 1000, 60000

local key, op, id, now, lease = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local grace = CALLERGRACE

local kept = redis.call('GET', key)
if kept and (#kept == 1 or #kept % SIZE ~= 1 or find(kept, '^[^%z\1]')) then
  return redis.error_reply('BADSTATE the value of ' .. key .. ' is not what is in flight')
end
if now == 0 then
  local time = redis.pcall('TIME')
  if time.err then
    return redis.error_reply('NOTIME ' .. time.err)
  end
  now, grace = time[1] * 1000000 + time[2], SERVERGRACE
end

-- To make a string takes Lua more than a nanosecond for each byte, so as few as can be
-- are made: the leases lie in kept behind its first `from` bytes.
kept = kept or '\0'
local waited = sub(kept, 1, 1) == '\1'
local waits, from = waited, 1
local changed = false

-- endof is when the lease at i ends, counted from 0.
local function endof(i)
  return (unpack('<I7', kept, from + i * SIZE + 17))
end

local function count()
  return (#kept - from) / SIZE
end

-- forget drops what has ended.
while count() > 0 and endof(0) <= now do
  from, changed = from + SIZE, true
end

-- seek gives the index of the flight, or nil.
local function seek()
  local start = from + 1
  while id ~= '' do
    start = find(kept, id, start, true)
    if not start then
      return nil
    end
    if (start - 1 - from) % SIZE == 0 then
      return (start - 1 - from) / SIZE
    end
    start = start + 1
  end
end

-- head is the byte and the leases before i.
local function head(i)
  if from == 1 then
    return sub(kept, 1, 1 + i * SIZE)
  end
  return sub(kept, 1, 1) .. sub(kept, from + 1, from + i * SIZE)
end

local function remove(i)
  kept, from, changed = head(i) .. sub(kept, from + (i + 1) * SIZE + 1), 1, true
end

-- insert puts the flight behind those that end no later.
local function insert(ending)
  local i = count()
  while i > 0 and endof(i - 1) > ending do
    i = i - 1
  end
  kept, from, changed = head(i) .. id .. pack('<I7', ending) .. sub(kept, from + i * SIZE + 1), 1, true
end

local at, retry, tell = seek(), 0, false
local held = at and 1 or 0
if at and op == 'release' then
  remove(at)
  waits, tell = false, waited
elseif at then
  local ending = max(endof(at), min(now + lease, MAX))
  remove(at)
  insert(ending)
elseif op == 'acquire' then
  local n = tonumber(ARGV[5])
  if count() < n then
    if id ~= '' then
      held = 1
      insert(min(now + lease, MAX))
    end
  elseif count() == 0 then
    retry = lease
  else
    retry = endof(min(count() - n, count() - 1)) - now
    waits = waited or ARGV[6] == '1'
  end
end

if count() == 0 then
  if changed then
    redis.call('DEL', key)
  end
elseif changed or waits ~= waited then
  if from > 1 or waits ~= waited then
    kept = (waits and '\1' or '\0') .. sub(kept, from + 1)
    from = 1
  end
  redis.call('SET', key, kept, 'PX', ceil((endof(count() - 1) - now) / 1000) + grace)
end
if tell then
  redis.pcall('PUBLISH', key, '') -- a user may have no channels; those who wait then wait for the end of a lease
end
return {held, floor(count()), retry}
