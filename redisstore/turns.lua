-- What waits for its turn, and what may still be taken back. Twin of turns.go, where the
-- idea is told.
--
-- Kept, instead of a state: a mark that no state has, the last turn before the grants that
-- are kept, when it was asked last, the numbers of the limit that granted them, the state
-- before them, the state after them, and for each of them its ticket, when it was asked, its
-- cost, its turn, and until when it may be taken back.
local MARK, MARKED = 'turns\0\255', 7
local TURNS, TURNSSIZE = '<c7I7I7I7I7I7I3I3I2', 50
local GRANT, GRANTSIZE = '<c8I7i7I7I7', 36
local MAXGRANTS = 1024
local NOTICKET = '\0\0\0\0\0\0\0\0'

-- hasturns says whether a value holds more than a state. In one, that byte is the highest of a
-- number below 2^53.
local function hasturns(value)
  return value and value:byte(MARKED) == 255
end

-- inside gives the two states in a value that has turns, each false if it is as at first
-- sight, or nothing if it is no such value.
local function inside(value)
  if #value < TURNSSIZE or value:sub(1, MARKED) ~= MARK then
    return nil
  end
  local _, _, _, _, _, _, base, current, grants = unpack(TURNS, value)
  if #value ~= TURNSSIZE + base + current + GRANTSIZE * grants then
    return nil
  end
  local from = TURNSSIZE + base
  return base > 0 and value:sub(TURNSSIZE + 1, from), current > 0 and value:sub(from + 1, from + current)
end

-- turned decides a request o on a key beside whose state there are turns, or may come to
-- be. decide is the algorithm. It returns the same as that; a state without a life is to be
-- written without a change of its expiry.
local function turned(decide, value, o, charge, capacity, a, b)
  local floor_, seen, grants, base, current = 0, 0, {}, false, value
  local by_capacity, by_a, by_b = capacity, a, b
  if hasturns(value) then
    base, current = inside(value)
    local _, count
    _, floor_, seen, by_capacity, by_a, by_b, _, _, count = unpack(TURNS, value)
    local at = #value - GRANTSIZE * count + 1
    for i = 1, count do
      local g = {}
      g.ticket, g.asked, g.cost, g.turn, g.till = unpack(GRANT, value, at)
      grants[i], at = g, at + GRANTSIZE
    end
  end

  local function last()
    return #grants > 0 and grants[#grants].turn or floor_
  end

  -- again charges a grant to a state.
  local function again(state, turn, cost)
    local _, _, _, after = decide(state, turn, cost, true, capacity, a, b)
    return after ~= '' and after
  end

  local now = max(o.now, seen)
  local at = max(now, last())

  local function final(g)
    return g.turn <= now and (g.ticket == NOTICKET or g.till <= now)
  end

  -- needed is until when the turns matter.
  local function needed()
    local till = last()
    for i = 1, #grants do
      if grants[i].ticket ~= NOTICKET then
        till = max(till, grants[i].till)
      end
    end
    return till
  end

  -- settle moves the grants that count for good into the base.
  local function settle()
    local n = 0
    while n < #grants and (final(grants[n + 1]) or #grants - n > MAXGRANTS) do
      n = n + 1
      base, floor_ = again(base, grants[n].turn, grants[n].cost), grants[n].turn
    end
    for i = 1, n > 0 and #grants or 0 do
      grants[i] = grants[i + n]
    end
  end

  local function takeback()
    for i = 1, #grants do
      local g = grants[i]
      if g.ticket == o.ticket and not final(g) then
        g.cost = g.cost + max(o.cost, -capacity)
        if g.cost <= 0 then
          table.remove(grants, i)
        end
        current = base
        local before = floor_
        for j = 1, #grants do
          g = grants[j]
          local at = max(g.asked, before)
          local _, retry = decide(current, at, g.cost, false, capacity, a, b)
          g.turn = at + max(retry, 0)
          current, before = again(current, g.turn, g.cost), g.turn
        end
        settle()
        return
      end
    end
  end

  -- kept is all that is kept.
  local function kept()
    if #grants == 0 and floor_ <= now then
      return current or ''
    end
    local parts = {pack(TURNS, MARK, floor_, seen, by_capacity, by_a, by_b, base and #base or 0, current and #current or 0, #grants), base or '', current or ''}
    for i = 1, #grants do
      local g = grants[i]
      parts[i + 3] = pack(GRANT, g.ticket, g.asked, g.cost, g.turn, g.till)
    end
    return table.concat(parts)
  end

  local _, _, counts, adopted, lives = decide(current, at, 0, false, capacity, a, b)
  if adopted then
    current, lives = adopted ~= '' and adopted, lives + (at - o.now)
  end
  if #grants > 0 and (by_capacity ~= capacity or by_a ~= a or by_b ~= b) then
    floor_, grants = last(), {} -- what was granted under other numbers counts for good
  end
  if counts == 0 and needed() <= now then
    now, floor_, seen, grants = o.now, 0, 0, {} -- as at first sight
  end

  local remaining, retry, reset
  if o.ticket ~= NOTICKET and o.cost < 0 then
    if charge then
      takeback()
    end
    at = max(now, last())
    remaining, retry, reset = decide(current, at, 0, false, capacity, a, b)
    if reset > 0 then
      reset = reset + (at - o.now)
    end
    if at > now then
      remaining = 0
    end
    return remaining, 0, reset, (charge and value or adopted) and kept(), adopted and max(lives, needed() - o.now)
  end

  at = max(now, last(), o.after)
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
    return remaining, retry, reset, adopted and kept(), adopted and max(lives, needed() - o.now)
  end
  local after
  remaining, _, reset, after, lives = decide(current, turn, o.cost, true, capacity, a, b)
  if reset > 0 then
    reset = reset + (turn - o.now)
  end
  if turn > now then
    remaining = 0
  end
  if #grants == 0 then
    base, by_capacity, by_a, by_b = current, capacity, a, b
  end
  grants[#grants + 1] = {
    ticket = o.ticket, asked = max(now, o.after), cost = asked(o.cost, capacity), turn = turn, till = min(turn + o.hold, MAX)}
  current, seen = after ~= '' and after, now
  settle()
  return remaining, retry, reset, kept(), max(lives + (turn - o.now), needed() - o.now)
end
