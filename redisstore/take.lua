-- Decides the requests of one call, each on its own key: all are granted and
-- charged, or none is charged.
--
-- KEYS[i]: the key of request i.
-- ARGV[1]: 1 to charge what is granted, 0 only to decide; 2 more if each request has nine
-- arguments instead of six.
-- ARGV[2]: the number of the algorithm of request i, its time in microseconds (0 for the
-- clock of this server), its cost, and three numbers of its limit; and of nine, how long it
-- may wait, its ticket in 8 bytes, and for how long it may be taken back; and so on for
-- each request.
--
-- Returns, for each request: what remains, and the microseconds until a retry (0 if
-- it is granted at once, -1 for never) and until the reset.

-- The number of the algorithm whose states grow with what was granted.
local SLIDINGLOG = '5'

-- What is no longer needed is kept a little longer, in milliseconds: a second
-- because time passes between the start of a script and its writes; a minute where
-- the time was the caller's, which need not pass as fast as the server's.

local SERVERGRACE, CALLERGRACE = 1000, 60000

-- wellformed says whether a state may be one of that algorithm. A log goes on in parts
-- of 9 bytes.
local wellformed
function wellformed(algorithm, value)
  if hasturns(value) then
    local base, current = inside(value)
    return base ~= nil and (not base or wellformed(algorithm, base)) and (not current or wellformed(algorithm, current))
  end
  local size = #value
  local alone, beside = sizes[algorithm][1], sizes[algorithm][2]
  if beside then
    return size == alone or size == beside
  end
  return size >= alone and (size - alone) % 9 == 0
end

local answer, states, clock = {}, {}, nil
local mode = tonumber(ARGV[1])
local stride = mode >= 2 and 9 or 6
for i = 1, #KEYS do
  local a = stride * (i - 1) + 2
  local state = redis.call('GET', KEYS[i])
  if state and not wellformed(ARGV[a], state) then
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

-- The first pass decides. If none is refused, the second charges, all at the latest of
-- their turns. A single request stands in nobody's way and needs the second alone.
local first, last, granted, turn = 1, 1, true, 0
if mode % 2 == 1 then
  last = 2
  if #KEYS == 1 then
    first = 2
  end
end
for pass = first, last do
  if not granted then
    break
  end
  local most, latest = nil, 0
  for i = 1, #KEYS do
    local a = stride * (i - 1) + 2
    local now, cost, grace = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), CALLERGRACE
    if now == 0 then
      now, grace = clock, SERVERGRACE
    end
    local charge = pass == 2 and cost ~= 0
    local decide, c, x, y = algorithms[ARGV[a]], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5])
    local wait, ticket = 0, NOTICKET
    if stride == 9 then
      wait, ticket = tonumber(ARGV[a + 6]), ARGV[a + 7]
    end
    local remaining, retry, reset, state, lives
    if wait > 0 or ticket ~= NOTICKET or hasturns(states[i]) then
      local most = ARGV[a] == SLIDINGLOG and min(MAXGRANTS, 1 + floor(MAXGRANTS * MAXGRANTS / c)) or MAXGRANTS
      remaining, retry, reset, state, lives = turned(decide, states[i], {
        now = now, cost = cost, wait = wait, ticket = ticket, hold = stride == 9 and tonumber(ARGV[a + 8]) or 0,
        after = turn > 0 and now + turn or 0}, charge, c, x, y, most)
    else
      remaining, retry, reset, state, lives = decide(states[i], now, cost, charge, c, x, y)
    end
    answer[3 * i - 2] = remaining
    answer[3 * i - 1] = min(retry, MAX)
    answer[3 * i] = min(reset, MAX)
    if state and cost ~= 0 then
      if state == '' then
        redis.call('DEL', KEYS[i])
      elseif lives then
        redis.call('SET', KEYS[i], state, 'PX', ceil(min(lives, MAX) / 1000) + grace)
      else
        redis.call('SET', KEYS[i], state, 'KEEPTTL')
      end
      states[i] = state ~= '' and state
    end
    if cost > 0 or (cost == 0 and ticket ~= NOTICKET) then
      granted = granted and retry ~= NEVER
    end
    if cost > 0 then
      most, latest = min(most or wait, wait), max(latest, retry)
    end
  end
  granted = granted and latest <= (most or 0)
  turn = latest
end
return answer
