-- What waits for its turn, and what may still be taken back. Twin of turns.go and of
-- takeback.go, where the ideas are told.
--
-- Kept, instead of a state: a mark that no state has, the last turn before the grants that
-- are kept, when it was asked last, the numbers of the limit that granted them, until when
-- any of it matters, the state before the grants and the state after them; and for each
-- grant by what it is known, when it was asked, its cost, its turn, and until when it may be
-- taken back, 0 for never. It is known by its ticket in 8 bytes, and in 4 of how many that were
-- granted together it is one; the highest bit of those is set if it may be taken back.
--
-- A long string costs about 3 ns a byte to make, because Redis hashes all of it. So grants are
-- read where they lie, and put together but once.
--
-- This is rare, and to define a function costs time in each run of a script. So all of it is inside of one
-- that is called when it is needed.
local NOTICKET = '\0\0\0\0\0\0\0\0\0\0\0\0'

-- turning returns hasturns, inside and turned, and how many grants of a limit are kept.
local function turning()
  local MARK, MARKED = 'turns\0\255', 7
  local TURNS, TURNSSIZE = '<c7I7I7I7I7I7I7I3I3', 55
  local GRANT, GRANTSIZE = '<c12I7i7I7I7', 40
  local TICKETSIZE = 8
  local MAXGRANTS = 1024

  -- hasturns says whether a value holds more than a state. In one, that byte is the highest of a
  -- number below 2^53.
  local function hasturns(value)
    return value and value:byte(MARKED) == 255
  end

  -- inside gives the two states in a value that has turns, each false if it is as at first
  -- sight, and where the grants begin; or nothing if it is no such value.
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
      from + current + 1
  end

  -- grantagain makes the grants of limits again, each when what is before it has been made. Of each
  -- of all it takes how it decides, the state and the last turn before its grants, and these in left;
  -- and leaves what they are after them, until when any of that matters, and for how long from now
  -- on the state is needed, if that is known.
  local function grantagain(all)
    local known = {} -- how many grants of each ticket there are, if there are several limits

    local function next(x)
      return x.left[x.made + 1]
    end

    -- own is the turn of the next grant as far as x alone can say.
    local function own(x, earliest)
      local at = max(earliest, x.last)
      local _, retry = x.decide(x.state, at, next(x).cost, false, x.capacity, x.a, x.b)
      return at + max(retry, 0)
    end

    local function grant(x, turn)
      local g = next(x)
      local _, _, _, after, lives = x.decide(x.state, turn, g.cost, true, x.capacity, x.a, x.b)
      g.turn = turn
      x.state, x.last, x.lives = after ~= '' and after, turn, lives + (turn - x.now)
      x.till = max(x.till, g.ends == 0 and turn or g.ends)
      x.made = x.made + 1
    end

    -- grantnext makes the next grant of x again, and what was granted together with it. It does
    -- nothing and returns false if something before one of those has not been made.
    local function grantnext(x)
      local g = next(x)
      if g.parts <= 1 then
        grant(x, own(x, g.asked))
        return true
      elseif g.parts ~= known[g.ticket] then
        grant(x, own(x, g.turn))
        return true
      end
      local ready, wait = {}, 0
      for _, y in ipairs(all) do
        local other = next(y)
        if other and other.ticket == g.ticket then
          ready[#ready + 1], wait = y, max(wait, own(y, other.asked) - other.asked)
        end
      end
      if #ready < g.parts then
        return false
      end
      for _, y in ipairs(ready) do
        grant(y, next(y).asked + wait)
      end
      return true
    end

    for _, x in ipairs(all) do
      x.made, x.till = 0, x.last
      for _, g in ipairs(#all > 1 and x.left or {}) do
        known[g.ticket] = (known[g.ticket] or 0) + 1
      end
    end
    local waits, moved
    repeat
      waits, moved = false, false
      for _, x in ipairs(all) do
        while next(x) and grantnext(x) do
          moved = true
        end
        waits = waits or next(x) ~= nil
      end
      if not moved then
        known = {} -- somebody used a ticket twice: now each limit goes on by itself
      end
    until not waits
  end

  -- turned decides a request o on a key beside whose state there are turns, or may come to
  -- be. decide is the algorithm, most bounds how many grants are kept. It returns the same as
  -- decide; a state without a life is to be written without a change of its expiry.
  --
  -- o has what is asked: now, cost, wait, hold, after, and as ticket by what the grant is to be
  -- known. What is taken back together is known from a decision without charge before: o.together
  -- is a table that those who ask for it share, and o.key the key in Redis.
  local function turned(decide, value, o, charge, capacity, a, b, most)
    local last, floor_, seen, till, base, current = 0, 0, 0, 0, false, value
    local from, added = #(value or '') + 1, '' -- where the grants begin in value, and one after them
    local by_capacity, by_a, by_b = capacity, a, b
    if hasturns(value) then
      base, current, from = inside(value)
      local _
      _, floor_, seen, by_capacity, by_a, by_b, till = unpack(TURNS, value)
      last = floor_
      if from < #value then
        _, _, _, last = unpack(GRANT, value, #value - GRANTSIZE + 1)
      end
    end
    value = value or ''

    -- again charges a grant to a state.
    local function again(state, turn, cost)
      local _, _, _, after, lives = decide(state, turn, cost, true, capacity, a, b)
      return after ~= '' and after, lives
    end

    local now = max(o.now, seen)

    local function final(turn, ends)
      return ends == 0 or (turn <= now and ends <= now)
    end

    -- settle moves the grants that count for good into the base.
    local function settle()
      while from < #value or added ~= '' do
        local grants, at = value, from
        if from > #value then
          grants, at = added, 1
        end
        local _, _, cost, turn, ends = unpack(GRANT, grants, at)
        if not final(turn, ends) and (#value - from + 1 + #added) / GRANTSIZE <= most then
          return
        end
        base, floor_ = again(base, turn, cost), turn
        if from < #value then
          from = from + GRANTSIZE
        else
          added = ''
        end
      end
    end

    -- find is where the grant of the ticket begins that may still be taken back.
    local function find()
      local ticket, at = o.ticket:sub(1, TICKETSIZE), from - 1
      repeat
        at = value:find(ticket, at + 1, true)
        if at and (at - from) % GRANTSIZE == 0 then
          local _, _, _, turn, ends = unpack(GRANT, value, at)
          if ends > 0 then
            return not final(turn, ends) and at or nil, turn
          end
        end
      until not at
    end

    -- without is the limit with its grants to be made again, but for the one found, or so much
    -- of it.
    local function without(found)
      local x = {decide = decide, capacity = capacity, a = a, b = b, state = base, last = floor_, now = o.now, left = {}}
      for at = from, #value, GRANTSIZE do
        local name, when, cost, turn, ends = unpack(GRANT, value, at)
        if at == found then
          cost = cost + max(o.cost, -capacity)
        end
        if at ~= found or cost > 0 then
          local parts = unpack('>I4', name, TICKETSIZE + 1) % 2147483648
          x.left[#x.left + 1] = {name = name, ticket = name:sub(1, TICKETSIZE), parts = parts, asked = when, cost = cost,
            turn = turn, ends = ends}
        end
      end
      return x
    end

    -- together is what is taken back together with this, and the place of this in it.
    local function together(found)
      local all, place = {}, 1
      local key = o.key:match('^[^}]*')
      for _, x in ipairs(o.together) do
        if x.key:match('^[^}]*') == key then
          all[#all + 1] = x
          if x.key == o.key then
            place = #all
          end
        end
      end
      if #all == 0 then
        all[1] = without(found)
      end
      return all, place
    end

    -- takeback returns how long from now on the state after it is needed, if that is known.
    local function takeback(found)
      local all, place = together(found)
      local x = all[place]
      if not x.made then
        grantagain(all)
      end
      local grants = {}
      for i, g in ipairs(x.left) do
        grants[i] = pack(GRANT, g.name, g.asked, g.cost, g.turn, g.ends)
      end
      value, from, current, last, till = table.concat(grants), 1, x.state, x.last, x.till
      settle()
      return x.lives and max(x.lives, till - o.now, 0)
    end

    -- kept is all that is kept.
    local function kept()
      if from > #value and added == '' and floor_ <= now then
        return current or ''
      end
      return pack(TURNS, MARK, floor_, seen, by_capacity, by_a, by_b, till, base and #base or 0, current and #current or 0) ..
        (base or '') .. (current or '') .. value:sub(from) .. added
    end

    local at = max(now, last)
    local _, _, counts, adopted, lives = decide(current, at, 0, false, capacity, a, b)
    if adopted then
      current, lives = adopted ~= '' and adopted, lives + (at - o.now)
    end
    if from <= #value and (by_capacity ~= capacity or by_a ~= a or by_b ~= b) then
      floor_, till, from = last, last, #value + 1 -- what was granted under other numbers counts for good
    end
    if counts == 0 and till <= now then
      now, floor_, last, seen, till, from = o.now, 0, 0, 0, 0, #value + 1 -- as at first sight
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
      elseif found and not charge then
        local x = without(found)
        x.key, o.together[#o.together + 1] = o.key, x
      elseif found then
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
    if from > #value then
      base, by_capacity, by_a, by_b = current, capacity, a, b
    end
    local ends = o.ticket:byte(TICKETSIZE + 1) > 127 and min(turn + o.hold, MAX) or 0
    added = pack(GRANT, o.ticket, o.now, asked(o.cost, capacity), turn, ends)
    till = max(till, ends == 0 and turn or ends)
    current, seen, last = after ~= '' and after, now, turn
    settle()
    return remaining, retry, reset, kept(), max(lives + (turn - o.now), till - o.now)
  end

  -- mostgrants is how many grants of a limit are kept. To make a grant of a log again costs as much as that is long.
  local function mostgrants(limit)
    return limit[6] and MAXGRANTS or min(MAXGRANTS, 1 + floor(MAXGRANTS * MAXGRANTS / limit[2]))
  end

  return hasturns, inside, turned, mostgrants
end
