-- Decides a batch of requests, each alone or together with those after it: of requests that
-- go together all are granted and charged, or none is charged. They are decided in their
-- order, each by what those before it left.
--
-- KEYS: the keys of the requests, each once.
-- ARGV[1]: the time in microseconds of requests that have none, 0 for the clock of this server.
-- ARGV[2]: the limits of the requests, each as LIMIT says: the number of its algorithm, its
-- capacity, and two more numbers.
-- ARGV[3]: the requests, each as REQUEST says: what it has, and the places of its key in KEYS
-- and of its limit; then, if it has them, its cost, its time, and how long it may wait, by what its
-- grant is to be known and for how long it may be taken back.
--
-- Returns a string, for each request as ANSWER says: what remains, and the microseconds
-- until a retry (0 if it is granted at once, or NEVER, or what was wrong: BADSTATE, WRONGTYPE or
-- NOROOM) and until the reset.
local LIMIT, REQUEST, COST, TIME, TURN, ANSWER = '<I1I7I7I7', '<I1I3I3', '<i7', '<I7', '<I7c12I7', '<I7i7I7'
local LOOKS, COSTS, TIMED, TURNS, TOGETHER = 1, 2, 4, 8, 16

-- What is no longer needed is kept a little longer, in seconds: one because time passes
-- between the start of a script and its writes; a minute where the time was the caller's,
-- which need not pass as fast as the server's.
local SERVERGRACE, CALLERGRACE = 1, 60

local clock, ofcaller = tonumber(ARGV[1]), true
if clock == 0 then
  local time = redis.pcall('TIME')
  if time.err then
    return redis.error_reply('NOTIME ' .. time.err)
  end
  clock, ofcaller = time[1] * 1000000 + time[2], false
end

local limits = {}
for at = 1, #ARGV[2], 22 do
  local algorithm, capacity, a, b = unpack(LIMIT, ARGV[2], at)
  local alone, beside = sizes[algorithm][1], sizes[algorithm][2]
  limits[#limits + 1] = {algorithms[algorithm], capacity, a, b, alone, beside, kinds[algorithm]}
end

-- known are the values at the keys, and changed those that will be written; each false
-- where there is none. expiries are in seconds, and false of a key that lives long enough as it is:
-- at least until what ends says, by the time of the server.
local known, changed, expiries, ends = redis.call('MGET', spread(KEYS, 1, min(1000, #KEYS))), {}, {}, {}
for from = 1001, #KEYS, 1000 do
  for i, value in ipairs(redis.call('MGET', spread(KEYS, from, min(from + 999, #KEYS)))) do
    known[from + i - 1] = value
  end
end

-- MGET tells no value of another type from none.
local absent, foreign = nil, {}
for i = 1, #KEYS do
  if not known[i] then
    absent = absent or {}
    absent[#absent + 1] = KEYS[i]
  end
end
for from = 1, absent and #absent or 0, 1000 do
  if redis.call('EXISTS', spread(absent, from, min(from + 999, #absent))) > 0 then
    for i = 1, #KEYS do
      if not known[i] and redis.call('EXISTS', KEYS[i]) == 1 then
        known[i], foreign[KEYS[i]] = '', true
      end
    end
  end
end

-- lifeof is the horizon of a state that is all there is at a key, whatever made it, and nil of any other value.
local function lifeof(limit, state)
  if not limit[7] or #state ~= limit[5] then
    return nil
  end
  local kind = limit[7]()
  local v = kind.unpack(state)
  return horizon(v.at, kind.wait(v))
end

local requests, answers, keyof = ARGV[3], {}, {}
local place, count, unusual = 1, 0, nil

-- A single request stands in nobody's way and is charged at once. Requests that go together, of which
-- first is where they begin, are decided, and if none is refused once more and charged, at the latest
-- of their turns. group is a table of theirs, for what turned notes.
--
-- A value with numbers that no state has may be granted and then not be charged. spoilt are the
-- keys of such values: undo restores what the others were before, and all are decided again with
-- these refused.
local first, before, charging, granted, most, latest, group, undo, spoilt
local turn = 0
while place <= #requests do
  local what, k, l, after = unpack(REQUEST, requests, place)
  local single = not first and what < TOGETHER
  if not (single or first) then
    first, before, charging, granted, most, latest, group, undo = place, count, false, true, nil, 0, {}, {}
  end
  place = after
  local limit, rest, charge = limits[l], what % TOGETHER, single or charging
  local cost, now, wait, ticket, hold, grace = 1, clock, 0, NOTICKET, 0, ofcaller
  if rest > 0 then
    charge = charge and rest % 2 < LOOKS
    if rest % 4 >= COSTS then
      cost, place = unpack(COST, requests, place)
      charge = charge and cost ~= 0
    end
    if rest % 8 >= TIMED then
      now, place = unpack(TIME, requests, place)
      grace = true
    end
    if rest >= TURNS then
      wait, ticket, hold, place = unpack(TURN, requests, place)
    end
  end
  local value = changed[k]
  if value == nil then
    value = known[k]
  end
  if spoilt and spoilt[k] then
    value = ''
  end
  local remaining, retry, reset, state, lives, till, lasts
  if rest < TURNS and (not value or #value == limit[5]) then
    remaining, retry, reset, state, lives, till, lasts = limit[1](value, now, cost, charge, limit[2], limit[3], limit[4])
  else
    unusual = unusual or unusually(foreign)
    remaining, retry, reset, state, lives = unusual(limit, value, {now = now, cost = cost, wait = wait, ticket = ticket,
      hold = hold, after = turn > 0 and cost > 0 and now + turn or 0, together = group or {}, key = KEYS[k]}, charge)
  end
  if state and cost ~= 0 then
    if undo and not undo[k] then
      undo[k] = {changed[k], expiries[k]}
    end
    changed[k] = state ~= '' and state
    till = till or lifeof(limit, state) or lives and now + (lives >= 0 and min(lives, MAX) or 0)
    if till then
      local from = grace and min(now, clock) or now
      ends[k] = not grace and (ends[k] or lasts) or 0
      expiries[k] = till > ends[k] and max(ceil((till - from) / 1000000), 0) + (grace and CALLERGRACE or SERVERGRACE)
    end
  end
  if not (retry <= MAX) then -- nor is it what no number is, of a state that is none
    retry = MAX
  end
  if not (reset <= MAX) then
    reset = MAX
  end
  count = count + 1
  keyof[count], answers[count] = k, pack(ANSWER, remaining, retry, reset)
  if not single then
    if cost > 0 then
      granted = granted and retry >= 0
      most, latest = min(most or wait, wait), max(latest, retry)
    elseif retry < NEVER or ticket ~= NOTICKET then
      granted = granted and retry >= 0
    end
    if charging and (not granted or cost > 0 and retry > wait) then
      for changedkey, was in pairs(undo) do
        changed[changedkey], expiries[changedkey] = was[1], was[2]
      end
      spoilt = spoilt or {}
      spoilt[k] = true
      place, count, charging, granted, most, latest, turn, group, undo = first, before, false, true, nil, 0, 0, {}, {}
    elseif what < TOGETHER and not charging and granted and latest <= (most or 0) then
      place, count, charging, turn, most, latest = first, before, true, latest, nil, 0
    elseif what < TOGETHER then
      first, turn, group, undo, spoilt = nil, 0, nil, nil, nil
    end
  end
end

-- What needs no room goes first, so that it is never refused for what others write.
for k = 1, #KEYS do
  if changed[k] == false and known[k] then
    redis.call('DEL', KEYS[k])
  end
end

-- A number becomes a string but once: that costs more than to decide. A server without room
-- refuses the first write, and so all; who wrote nothing has his answer. Its error begins with its
-- code, before which Redis 6 tells the place in the script.
local texts = {}
for k = 1, #KEYS do
  local state, seconds, done = changed[k], expiries[k], nil
  if seconds and not texts[seconds] then
    texts[seconds] = string.format('%d', seconds)
  end
  if state and seconds then
    done = redis.pcall('SET', KEYS[k], state, 'EX', texts[seconds])
  elseif state and #state == #known[k] then
    done = redis.pcall('SETRANGE', KEYS[k], '0', state) -- in place, at less than half of the cost
    done = type(done) == 'table' and done
  elseif state then
    done = redis.pcall('SET', KEYS[k], state, 'KEEPTTL')
  end
  if done and done.err and done.err:gsub('^@user_script: %d+: %-', ''):find('^OOM ') then
    for n = 1, count do
      if changed[keyof[n]] then
        answers[n] = pack(ANSWER, 0, NOROOM, 0)
      end
    end
    break
  elseif done and done.err then
    return redis.error_reply(done.err)
  end
end
return table.concat(answers)
