-- Decides a batch of requests in their order, each by what those before it left: alone, or
-- together with those after it, and then all are granted and charged, or none is.
--
-- KEYS: the keys of the requests, each once.
-- ARGV[1]: the time in microseconds, or 0 for the clock of this server.
-- ARGV[2]: the limits, each as '<I1I7I7I7': the algorithm, the capacity, and two more numbers.
-- ARGV[3]: the requests, each as '<I1I3I3': what it has, and the indices of its key and its
-- limit; then what it has: its cost '<i7', its time '<I7', how long it may wait and which start
-- it cancels '<I7I7'.
--
-- Returns for each request '<I7i7I7': what remains, the microseconds until a retry (0 if it is
-- granted at once, or one of the codes below 0), and until the initial state; and if
-- group.lua is there, the clock '<I7'.
--
-- Every number is a whole number below 2^53, which a double holds exactly. The quotient of two
-- such numbers, rounded down or up, is exact as well.
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local spread, unpack, pack = unpack, struct.unpack, struct.pack
local NEVER, BADSTATE, WRONGTYPE, NOROOM, MAX = -1, -2, -3, -4, 9007199254740991

-- Each algorithm enters its function here, by its number, which is also the tag of its states:
-- a state begins with the tag and the time at which it changed. charge is true, false or 'force',
-- which charges also what does not fit. The function returns what remains, below 0 if more is used
-- than the capacity, the wait, the time until the initial state, and if the request is charged the
-- next state ('' is the initial one); then, if the key has to live longer than it does, its expiry
-- in seconds since the Unix epoch. Nothing is returned for other values, or one booked ahead.
local algorithms = {}

-- grace is how much longer a key lives, in microseconds, where times are the caller's. since is
-- set where a state is booked ahead: then the initial state is kept as well, and a log keeps
-- what has not expired since then.
local grace, since = 0, nil

-- values are what is kept at the keys, by index; changed what will be written, and expiries
-- when a key expires, if that changes. k is the index of the key of the request.
local k, values, limits, changed, expiries, answers = nil, nil, {}, {}, nil, {}

-- clock is the time of requests that have none; servers is set if it is that of this server.
local call, clock, servers = redis.call, tonumber(ARGV[1]), false
if clock == 0 then
  local time = redis.pcall('TIME')
  if time.err then
    return redis.error_reply('NOTIME ' .. time.err)
  end
  clock, servers = time[1] * 1000000 + time[2], true
end

-- slowly decides what is rare, if group.lua is there.
local slowly
