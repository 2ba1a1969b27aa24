-- Decides the requests of one call, each on its own key: all are granted and
-- charged, or none is charged.
--
-- KEYS[i]: the key of request i.
-- ARGV[1]: 1 to charge what is granted, 0 only to decide.
-- ARGV[2]: the algorithm of request i, its time in microseconds (0 for the
-- clock of this server), its cost, and three numbers of its limit; and so on, six
-- for each request.
--
-- Returns, for each request: what remains, and the microseconds until a retry (0 if
-- it is granted, -1 for never) and until the reset.

local ALGORITHMS = {
  tokenbucket,
  steppedtokenbucket,
  fixedwindow,
  slidingwindow,
  slidinglog,
}

-- The length of a state is this, or for a log, which has a part for each grant, a
-- multiple of it.
local SIZES = { 28, 28, 21, 28, 9 }
local LOG = 5

-- What is no longer needed is kept a little longer, in milliseconds: a second
-- because time passes between the start of a script and its writes; a minute where
-- the time was the caller's, which need not pass as fast as the server's.
local SERVERGRACE, CALLERGRACE = 1000, 60000

local function wellformed(algorithm, size)
  if algorithm == LOG then
    return size > SIZES[LOG] and size % SIZES[LOG] == 0
  end
  return size == SIZES[algorithm]
end

local clock
local function servertime()
  if not clock then
    local time = redis.pcall('TIME')
    if time.err then
      return nil, redis.error_reply('NOTIME ' .. time.err)
    end
    clock = time[1] * 1000000 + time[2]
  end
  return clock
end

-- keep writes what a decision made of a state, with its expiry.
local function keep(key, state, reset, grace)
  if state == '' then
    redis.call('DEL', key)
  else
    redis.call('SET', key, state, 'PX', ceil(reset / 1000) + grace)
  end
end

local answer, kept = {}, {}

-- decide answers request i, and writes what follows; it says whether the request
-- stands in the way of none of its siblings.
local function decide(i, charge)
  local a = 6 * i - 4
  local now, cost = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local grace = CALLERGRACE
  if now == 0 then
    now, grace = clock, SERVERGRACE
  end
  local remaining, retry, reset, state = ALGORITHMS[tonumber(ARGV[a])](
    kept[i], now, cost, charge and cost ~= 0,
    tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5]))
  reset = min(reset, MAX)
  answer[3 * i - 2] = remaining
  answer[3 * i - 1] = min(retry, MAX)
  answer[3 * i] = reset
  if state and cost ~= 0 then
    keep(KEYS[i], state, reset, grace)
    kept[i] = state ~= '' and state
  end
  return retry == 0 or cost == 0
end

for i = 1, #KEYS do
  if ARGV[6 * i - 3] == '0' then
    local _, refused = servertime()
    if refused then
      return refused
    end
  end
  kept[i] = redis.call('GET', KEYS[i])
  if kept[i] and not wellformed(tonumber(ARGV[6 * i - 4]), #kept[i]) then
    return redis.error_reply('BADSTATE the value of ' .. KEYS[i] .. ' is not a state of this limit')
  end
end

local charge = ARGV[1] == '1'
local granted = true
if #KEYS == 1 then
  decide(1, charge)
  return answer
end
for i = 1, #KEYS do
  granted = decide(i, false) and granted
end
if charge and granted then
  for i = 1, #KEYS do
    decide(i, true)
  end
end
return answer
