-- Decides a batch of requests in their order, each by what those before it left: alone, or
-- together with those after it, and then all are granted and charged, or none is.
--
-- KEYS: the keys of the requests, each once.
-- ARGV[1]: the limits, each as '<I1I7I7I7': the algorithm, the capacity, and two more numbers.
-- ARGV[2]: the requests, each as '<I1I3I3': what it has, and the indices of its key and its
-- limit; then what it has: its cost '<i7', its time '<I7', how long it may wait and which start
-- it cancels '<I7I7'.
--
-- Returns for each request '<I7i7I7': what remains, the microseconds until a retry (0 if it is
-- granted at once, or one of the codes below 0), and until the initial state; and if
-- slow_path.lua is there, the clock '<I7'.
local BADSTATE, WRONGTYPE, NOROOM = -2, -3, -4
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local call = redis.call

-- values are what is kept at the keys, by index; changed what will be written, and expiries
-- when a key expires, if that changes. k is the index of the key of the request.
local k, values, limits, changed, expiries, answers = nil, nil, {}, {}, nil, {}

-- slowly decides what is rare, if slow_path.lua is there.
local slowly
