-- Decides requests that may wait or that are about a turn, and those on a value that may be more than a
-- state, or none. Like what it needs of turns.lua it is rare, and inside of a function for that reason.
--
-- unusually returns the function that does. foreign are the keys with a value that is no string.
local function unusually(foreign)
  local hasturns, inside, turned, mostgrants = turning()

  -- wellformed says whether a value may be a state of a limit. A log goes on in parts of 9 bytes.
  local function wellformed(limit, value)
    if hasturns(value) then
      local base, current = inside(value)
      return base ~= nil and (not base or wellformed(limit, base)) and (not current or wellformed(limit, current))
    end
    local alone, beside = limit[5], limit[6]
    if beside then
      return #value == alone or #value == beside
    end
    return #value >= alone and (#value - alone) % 9 == 0
  end

  -- unusual decides a request o that may wait or that is about a turn, or one on a value that
  -- may be more than a state, or none. See turned for what o has.
  local function unusual(limit, value, o, charge)
    if value and not wellformed(limit, value) then
      return 0, foreign[o.key] and WRONGTYPE or BADSTATE, 0
    end
    local decide, capacity, a, b = limit[1], limit[2], limit[3], limit[4]
    if o.wait == 0 and o.ticket == NOTICKET and not hasturns(value) then
      return decide(value, o.now, o.cost, charge, capacity, a, b)
    end
    return turned(decide, value, o, charge, capacity, a, b, mostgrants(limit))
  end

  -- told is what unusual returned, or that the value was none of ours if it failed on it: no
  -- value may make the call fail in which others ask for other keys.
  local function told(well, ...)
    if well then
      return ...
    end
    return 0, BADSTATE, 0
  end

  return function(...)
    return told(pcall(unusual, ...))
  end
end
