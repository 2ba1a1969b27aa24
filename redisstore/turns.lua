-- What waits for its turn, and what may still be taken back. Twin of turns.go, where the
-- idea is told.
--
-- Kept, instead of a state: a mark that no state has, the last turn before the grants that
-- are kept, when it was asked last, the numbers of the limit that granted them, until when
-- any of it matters, the state before the grants and the state after them; and for each
-- grant its ticket, when it was asked, its cost, its turn, and until when it may be taken back.
local MARK, MARKED = 'turns\0\255', 7
local TURNS, TURNSSIZE = '<c7I7I7I7I7I7I7I3I3', 55
local GRANT, GRANTSIZE = '<c8I7i7I7I7', 36
local MAXGRANTS = 1024
local NOTICKET = '\0\0\0\0\0\0\0\0'

-- hasturns says whether a value holds more than a state. In one, that byte is the highest of a
-- number below 2^53.
local function hasturns(value)
  return value and value:byte(MARKED) == 255
end

-- inside gives the two states in a value that has turns, each false if it is as at first
-- sight, and the grants; or nothing if it is no such value.
local function inside(value)
  if #value < TURNSSIZE or value:sub(1, MARKED) ~= MARK then
    return nil
  end
  local _, _, _, _, _, _, _, base, current = unpack(TURNS, value)
  local from = TURNSSIZE + base
  local grants = #value - from - current
  if grants < 0 or grants % GRANTSIZE ~= 0 then
    return nil
  end
  return base > 0 and value:sub(TURNSSIZE + 1, from), current > 0 and value:sub(from + 1, from + current),
    value:sub(from + current + 1)
end

-- turned decides a request o on a key beside whose state there are turns, or may come to
-- be. decide is the algorithm, most bounds how many grants are kept. It returns the same as
-- decide; a state without a life is to be written without a change of its expiry.
local function turned(decide, value, o, charge, capacity, a, b, most)
  local last, floor_, seen, till, base, current, grants = 0, 0, 0, 0, false, value, ''
  local by_capacity, by_a, by_b = capacity, a, b
  if hasturns(value) then
    base, current, grants = inside(value)
    local _
    _, floor_, seen, by_capacity, by_a, by_b, till = unpack(TURNS, value)
    last = floor_
    if grants ~= '' then
      _, _, _, last = unpack(GRANT, grants, #grants - GRANTSIZE + 1)
    end
  end

  -- again charges a grant to a state.
  local function again(state, turn, cost)
    local _, _, _, after, lives = decide(state, turn, cost, true, capacity, a, b)
    return after ~= '' and after, lives
  end

  local now = max(o.now, seen)

  local function final(ticket, turn, ends)
    return ticket == NOTICKET or (turn <= now and ends <= now)
  end

  -- settle moves the grants that count for good into the base.
  local function settle()
    local from = 1
    while from < #grants do
      local ticket, _, cost, turn, ends = unpack(GRANT, grants, from)
      if not final(ticket, turn, ends) and (#grants - from + 1) / GRANTSIZE <= most then
        break
      end
      base, floor_ = again(base, turn, cost), turn
      from = from + GRANTSIZE
    end
    grants = grants:sub(from)
  end

  -- find is where the grant of the ticket begins that may still be taken back.
  local function find()
    local at = grants:find(o.ticket, 1, true)
    while at and (at - 1) % GRANTSIZE ~= 0 do
      at = grants:find(o.ticket, at + 1, true)
    end
    if at then
      local ticket, _, _, turn, ends = unpack(GRANT, grants, at)
      if not final(ticket, turn, ends) then
        return at, turn
      end
    end
  end

  -- takeback returns how long from now on the state after it is needed, if that is known.
  local function takeback(found)
    local parts, lives = {}, nil
    current, last, till = base, floor_, floor_
    for at = 1, #grants, GRANTSIZE do
      local ticket, when, cost, turn, ends = unpack(GRANT, grants, at)
      if at == found then
        cost = cost + max(o.cost, -capacity)
      end
      if at ~= found or cost > 0 then
        turn = max(when, last)
        local _, retry = decide(current, turn, cost, false, capacity, a, b)
        turn = turn + max(retry, 0)
        current, lives = again(current, turn, cost)
        last, lives = turn, lives + (turn - o.now)
        till = max(till, ticket == NOTICKET and turn or ends)
        parts[#parts + 1] = pack(GRANT, ticket, when, cost, turn, ends)
      end
    end
    grants = table.concat(parts)
    settle()
    return lives and max(lives, till - o.now, 0)
  end

  -- kept is all that is kept.
  local function kept()
    if grants == '' and floor_ <= now then
      return current or ''
    end
    return pack(TURNS, MARK, floor_, seen, by_capacity, by_a, by_b, till, base and #base or 0, current and #current or 0) ..
      (base or '') .. (current or '') .. grants
  end

  local at = max(now, last)
  local _, _, counts, adopted, lives = decide(current, at, 0, false, capacity, a, b)
  if adopted then
    current, lives = adopted ~= '' and adopted, lives + (at - o.now)
  end
  if grants ~= '' and (by_capacity ~= capacity or by_a ~= a or by_b ~= b) then
    floor_, till, grants = last, last, '' -- what was granted under other numbers counts for good
  end
  if counts == 0 and till <= now then
    now, floor_, last, seen, till, grants = o.now, 0, 0, 0, 0, '' -- as at first sight
  end

  -- look is the answer to one who asks for nothing.
  local function look()
    local from = max(now, last)
    local remaining, _, reset = decide(current, from, 0, false, capacity, a, b)
    if reset > 0 then
      reset = reset + (from - o.now)
    end
    return from > now and 0 or remaining, 0, reset
  end

  local remaining, retry, reset
  if o.ticket ~= NOTICKET and o.cost <= 0 then
    local found, turn = find()
    if found and o.cost == 0 then
      remaining, _, reset = look()
      return remaining, turn > now and turn - o.now or 0, reset
    elseif found and charge then
      lives = takeback(found)
      remaining, retry, reset = look()
      return remaining, retry, reset, kept(), lives
    end
    remaining, retry, reset = look()
    return remaining, found and 0 or NEVER, reset
  elseif o.cost < 0 and last > now then
    remaining, retry, reset = look() -- it would make room at a turn that is not its own
    return remaining, retry, reset, adopted and kept(), adopted and max(lives, till - o.now, 0)
  end

  at = max(now, last, o.after)
  remaining, retry, reset = decide(current, at, o.cost, false, capacity, a, b)
  local turn = at + max(retry, 0)
  if reset > 0 then
    reset = reset + (at - o.now)
  end
  if at > now then
    remaining = 0
  end
  if retry ~= NEVER then
    retry = turn > now and turn - o.now or 0
  end
  if o.cost < 0 then
    retry = 0
  elseif turn > MAX then
    retry = NEVER
  end
  if not charge or (o.cost >= 0 and (retry == NEVER or retry > o.wait)) then
    return remaining, retry, reset, adopted and kept(), adopted and max(lives, till - o.now, 0)
  end
  local after
  remaining, _, reset, after, lives = decide(current, turn, o.cost, true, capacity, a, b)
  if reset > 0 then
    reset = reset + (turn - o.now)
  end
  if turn > now then
    remaining = 0
  end
  if grants == '' then
    base, by_capacity, by_a, by_b = current, capacity, a, b
  end
  local ends = min(turn + o.hold, MAX)
  grants = grants .. pack(GRANT, o.ticket, max(now, o.after), asked(o.cost, capacity), turn, ends)
  till = max(till, o.ticket == NOTICKET and turn or ends)
  current, seen, last = after ~= '' and after, now, turn
  settle()
  return remaining, retry, reset, kept(), max(lives + (turn - o.now), till - o.now)
end
