-- Keeps the permits of one key, in the order in which they expire. The functions are those of
-- type permits in concurrency/memory.go.
--
-- KEYS[1]: the key, which is also the channel on which releases are published.
-- ARGV[1]: acquire, renew or release.
-- ARGV[2]: the permit's ID of 16 bytes, or empty to acquire nothing.
-- ARGV[3]: the time in microseconds, or 0 for the clock of this server.
-- ARGV[4]: the TTL in microseconds; in a release, how long the place stays in use, or 0.
-- ARGV[5]: how many permits may be in use.
-- ARGV[6]: 1 to be notified of the next release, if the request is denied.
--
-- Returns whether the permit is held (before a release), how many are in use, and the
-- microseconds until a retry (0 if the request is allowed).
--
-- The value is a byte, 1 if the next release is to be published, and 23 bytes for each permit:
-- its ID, and its expiry time as a whole number of 7 bytes.
local max, min, ceil, floor = math.max, math.min, math.ceil, math.floor
local pack, unpack = struct.pack, struct.unpack
local sub, find = string.sub, string.find

local MAX = 9007199254740991
local SIZE = 23

if struct.size('L') < 8 then -- see prelude.lua
  return redis.error_reply('BITS this server is a 32-bit program')
end

-- Milliseconds that Redis keeps the key after the last permit has expired: longer where the time
-- is the caller's, because callers' clocks differ.
local SERVER_GRACE, CALLER_GRACE = 1000, 60000

local key, op, id, now, ttl = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local grace = CALLER_GRACE

local value = redis.call('GET', key)
if value and (#value == 1 or #value % SIZE ~= 1 or find(value, '^[^%z\1]')) then
  return redis.error_reply('BADSTATE the value of ' .. key .. ' is not a list of permits')
end
if now == 0 then
  local time = redis.pcall('TIME')
  if time.err then
    return redis.error_reply('NOTIME ' .. time.err)
  end
  now, grace = time[1] * 1000000 + time[2], SERVER_GRACE
end

value = value or '\0'
local count = (#value - 1) / SIZE
local was_notify = sub(value, 1, 1) == '\1'
local notify, changed = was_notify, false

-- expires returns when the permit at i expires. The first has index 0.
local function expires(i)
  return (unpack('<I7', value, i * SIZE + 18))
end

-- replace puts text in the place of n permits from i on.
local function replace(i, n, text)
  value = sub(value, 1, 1 + i * SIZE) .. text .. sub(value, 2 + (i + n) * SIZE)
  count, changed = (#value - 1) / SIZE, true
end

local function expire()
  local n = 0
  while n < count and expires(n) <= now do
    n = n + 1
  end
  if n > 0 then
    replace(0, n, '')
  end
end

-- index returns the index of the permit, or nil.
local function index()
  local start = 2
  while id ~= '' do
    start = find(value, id, start, true)
    if not start then
      return nil
    end
    if (start - 2) % SIZE == 0 then
      return (start - 2) / SIZE
    end
    start = start + 1
  end
end

-- insert adds the permit after those that expire no later.
local function insert(expiry)
  local i = count
  while i > 0 and expires(i - 1) > expiry do
    i = i - 1
  end
  replace(i, 0, id .. pack('<I7', expiry))
end

expire()
local at, retry = index(), 0
local held = at and 1 or 0
local released = at and op == 'release'
if released then
  replace(at, 1, '')
  if ttl > 0 then
    id = string.rep('\0', 16) -- which no call names
    insert(min(now + ttl, MAX))
  end
  notify = false
elseif at then
  local expiry = max(expires(at), min(now + ttl, MAX))
  replace(at, 1, '')
  insert(expiry)
elseif op == 'acquire' then
  local limit = tonumber(ARGV[5])
  if count < limit then
    if id ~= '' then
      held = 1
      insert(min(now + ttl, MAX))
    end
  elseif count == 0 then
    retry = ttl
  else
    retry = floor(expires(min(count - limit, count - 1)) - now)
    notify = was_notify or ARGV[6] == '1'
  end
end

if count == 0 and changed then
  redis.call('DEL', key)
elseif changed or notify ~= was_notify then
  if notify ~= was_notify then
    value = (notify and '\1' or '\0') .. sub(value, 2)
  end
  redis.call('SET', key, value, 'PX', ceil((expires(count - 1) - now) / 1000) + grace)
end
if released and was_notify then
  redis.pcall('PUBLISH', key, '') -- may fail: a user may have no rights to channels
end
return {held, floor(count), retry}
