-- Decides the requests of one call, each on its own key: all are granted and
-- charged, or none is charged.
--
-- KEYS[i]: the key of request i.
-- ARGV[1]: 1 to charge what is granted, 0 only to decide.
-- ARGV[2]: the number of the algorithm of request i, its time in microseconds (0 for the
-- clock of this server), its cost, and three numbers of its limit; and so on, six
-- for each request.
--
-- Returns, for each request: what remains, and the microseconds until a retry (0 if
-- it is granted, -1 for never) and until the reset.

-- What is no longer needed is kept a little longer, in milliseconds: a second
-- because time passes between the start of a script and its writes; a minute where
-- the time was the caller's, which need not pass as fast as the server's.
local SERVERGRACE, CALLERGRACE = 1000, 60000

-- wellformed says whether a state may be one of that algorithm. A log goes on in parts
-- of 9 bytes.
local function wellformed(algorithm, size)
  local alone, beside = sizes[algorithm][1], sizes[algorithm][2]
  if beside then
    return size == alone or size == beside
  end
  return size >= alone and (size - alone) % 9 == 0
end

local answer, states, clock = {}, {}, nil
for i = 1, #KEYS do
  local a = 6 * i - 4
  local state = redis.call('GET', KEYS[i])
  if state and not wellformed(ARGV[a], #state) then
    return redis.error_reply('BADSTATE the value of ' .. KEYS[i] .. ' is not a state of this limit')
  end
  states[i] = state
  if ARGV[a + 1] == '0' and not clock then
    local time = redis.pcall('TIME')
    if time.err then
      return redis.error_reply('NOTIME ' .. time.err)
    end
    clock = time[1] * 1000000 + time[2]
  end
end

-- The first pass decides. If none is refused, the second charges. A single request
-- stands in nobody's way and needs the second alone.
local first, last, granted = 1, 1, true
if ARGV[1] == '1' then
  last = 2
  if #KEYS == 1 then
    first = 2
  end
end
for pass = first, last do
  if not granted then
    break
  end
  for i = 1, #KEYS do
    local a = 6 * i - 4
    local now, cost, grace = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), CALLERGRACE
    if now == 0 then
      now, grace = clock, SERVERGRACE
    end
    local remaining, retry, reset, state, lives = algorithms[ARGV[a]](
      states[i], now, cost, pass == 2 and cost ~= 0,
      tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5]))
    answer[3 * i - 2] = remaining
    answer[3 * i - 1] = min(retry, MAX)
    answer[3 * i] = min(reset, MAX)
    if state and cost ~= 0 then
      if state == '' then
        redis.call('DEL', KEYS[i])
      else
        redis.call('SET', KEYS[i], state, 'PX', ceil(min(lives, MAX) / 1000) + grace)
      end
      states[i] = state ~= '' and state
    end
    granted = granted and (retry == 0 or cost == 0)
  end
end
return answer
