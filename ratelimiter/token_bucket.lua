-- Takes a token from the bucket that is kept in a hash, if it holds one.
--
-- KEYS[1]: the hash. Its field tokens is what the bucket holds, last_refill the moment up
-- to which it has been refilled, in seconds since the Unix epoch; both are decimal text,
-- with or without a fraction, because other programs read and write them as well.
--
-- ARGV[1]: the time in microseconds, 0 for the clock of this server.
-- ARGV[2]: what a full bucket holds and ARGV[3] what a token is, in parts; ARGV[4]: the
-- parts that flow in each ARGV[5] microseconds; ARGV[6]: how long the hash lives after a
-- grant, in milliseconds. The parts are chosen so that all of these are whole.
--
-- Returns 1 for a grant and 0 for a denial, the whole tokens that remain, the
-- microseconds until a token is there (0 after a grant), and when the bucket will be
-- full, in microseconds since the Unix epoch.
--
-- Every number here is a whole number below 2^53 unless it is said to be text. The
-- quotient of two such numbers, rounded down or up, is exact as well.
local min, floor, ceil, format = math.min, math.floor, math.ceil, string.format
local MAX = 9007199254740991

local key = KEYS[1]
local now, full, unit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local amount, interval, life = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

-- parts reads a number of tokens. A whole number of parts is meant: what is missing to
-- it by the error of the doubles that others add up is not taken away.
local function parts(text)
  local tokens = tonumber(text)
  if not tokens or not (tokens >= 0 and tokens <= MAX) then
    return nil
  end
  local exact = tokens * unit
  return min(floor(exact + exact * 2 ^ -51 + 2 ^ -20), full)
end

-- micros reads a time in seconds. A double holds today's to a quarter of a microsecond.
local function micros(text)
  local seconds = tonumber(text)
  if not seconds or not (seconds >= 0 and seconds <= MAX / 1000000) then
    return nil
  end
  return floor(seconds * 1000000 + 0.5)
end

-- tokentext writes parts as tokens, in the fewest digits that are read as the same.
local function tokentext(held)
  local text = format('%.15g', held / unit)
  if tonumber(text) == held / unit then
    return text
  end
  return format('%.17g', held / unit)
end

local function secondstext(at)
  return format('%d.%06d', floor(at / 1000000), at % 1000000)
end

-- arrival is when a bucket refilled up to last has got the parts that it lacks.
local function arrival(last, lacking)
  return last + ceil(lacking / amount) * interval
end

if now == 0 then
  local time = redis.pcall('TIME')
  if time.err then
    return redis.error_reply('NOTIME ' .. time.err)
  end
  now = time[1] * 1000000 + time[2]
end

local kept = redis.pcall('HMGET', key, 'tokens', 'last_refill')
if kept.err then
  return kept
end
local held, last
if kept[1] or kept[2] or redis.call('EXISTS', key) == 1 then
  held, last = parts(kept[1]), micros(kept[2])
  if not held or not last then
    return redis.error_reply('BADSTATE its value is not a token bucket')
  end
else
  held, last = full, now
end

-- A clock that is behind the latest refill brings nothing, and takes nothing back.
local ticks = floor((now - last) / interval)
if ticks > 0 then
  if ticks >= ceil((full - held) / amount) then
    held = full
  else
    held = held + ticks * amount
  end
  last = last + ticks * interval
end

if held >= unit then
  held = held - unit
  redis.call('HSET', key, 'tokens', tokentext(held), 'last_refill', secondstext(last))
  redis.call('PEXPIRE', key, life)
  return {1, floor(held / unit), 0, min(arrival(last, full - held), now + life * 1000, MAX)}
end

-- A denial only mends an expiry that is missing, or that is shorter than it can be if
-- each grant had set it: others may have taken since, who set none. If a clock far ahead has
-- written last_refill, it is left to expire: then the bucket starts full.
local left = redis.call('PTTL', key)
if left < 0 or (left < life / 2 and arrival(last, full - held) - now <= life * 1000) then
  redis.call('PEXPIRE', key, life)
  left = life
end
local gone = min(now + (left + 1) * 1000, MAX)
return {0, 0, min(arrival(last, unit - held), gone) - now, min(arrival(last, full - held), gone)}
