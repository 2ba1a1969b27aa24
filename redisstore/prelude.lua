-- The beginning of each script: what an algorithm needs, and the clock.
--
-- ARGV[3]: the time in microseconds; the clock of this server if there is none.
--
-- Each algorithm is a function of a state, a time, a cost and how to charge it: true, false or
-- 'force', which charges also what does not fit. A state begins with the number of the algorithm
-- and the time at which it changed. The function returns what remains, below 0 if more is used
-- than the capacity, the wait, the time until the initial state, and if the request is charged the
-- next state ('' is the initial one); then, if the key has to live longer than it does, its expiry
-- in seconds since the Unix epoch. Nothing is returned for other values, or one booked ahead.
--
-- grace is how much longer a key lives, in microseconds, where times are the caller's. since is
-- set where a state is booked ahead: then the initial state is kept as well, and a log keeps
-- what has not expired since then. A plain request has neither.
--
-- Every number is a whole number below 2^53, which a double holds exactly. The quotient of two
-- such numbers, rounded down or up, is exact as well. A function that uses a local of the script
-- costs each run more than a few names of globals, so most of what is used once is a global.
local spread, unpack, pack = unpack, struct.unpack, struct.pack
local NEVER, MAX = -1, 9007199254740991

-- prolonged is set by an algorithm if the numbers of the limit have changed and so the key has to
-- live longer, also if the request is denied: its expiry.
local prolonged

if struct.size('L') < 8 then -- which would lose the upper half of each time
  return redis.error_reply('BITS this server is a 32-bit program')
end

-- clock is the time of requests that have none; servers is set if it is that of this server.
local clock, servers = ARGV[3], false
if clock then
  clock = tonumber(clock)
else
  local time = redis.pcall('TIME')
  if time.err then
    return redis.error_reply('NOTIME ' .. time.err)
  end
  clock, servers = time[1] * 1000000 + time[2], true
end
