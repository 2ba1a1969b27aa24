-- slidingwindow decides by the grants in the window that now is in, plus those of the window
-- before weighed by how much of it a window ending now would still cover. used counts the
-- grants in the window of at, previous those in the one before. Twin of sliding_window.go.
local function slidingwindow(state, now, cost, charge, capacity, period, _, grace, since)
  local tag, at, used, previous, expires = 4, 0, 0, 0, 0
  if state then
    if #state ~= 27 then
      return
    end
    tag, at, used, previous, expires = unpack('<I1I7I7I7I5', state)
    if tag ~= 4 then
      return
    end
  end
  local skew = at > now and at - now or 0
  now = now + skew
  local elapsed = now % period
  local start = now - elapsed
  if at < start - period then
    used, previous = 0, 0
  elseif at < start then
    used, previous = 0, used
  end
  local weight = period - elapsed
  local ask = cost == 0 and 1 or cost
  local retry, reset = 0, 0
  if ask > capacity or ask > 0 and previous * weight > (capacity - used - ask) * period then
    charge = charge == 'force'
    used = charge and math.min(used + ask, 4294967295, math.floor(MAX / period)) or used
    local room = capacity - used - ask
    if ask > capacity then
      retry = NEVER
    elseif room >= 0 then -- the last window is in the way, and counts for less later in this one
      retry = skew + weight - math.floor(room * period / previous)
    else -- this window is in the way, and counts for less some way into the next one
      retry = skew + weight + period - math.floor((capacity - ask) * period / used)
    end
  elseif charge then
    previous = math.max(previous + math.min(used + ask, 0), 0)
    used = math.max(used + ask, 0)
  end
  if used > 0 then
    reset = skew + weight + period
  elseif previous > 0 then
    reset = skew + weight
  end
  local remaining, renewed = capacity - used - math.ceil(previous * weight / period), nil
  if not charge then
    return remaining, retry, reset
  elseif reset == 0 and not since then
    return remaining, retry, reset, ''
  end
  local needed = (now + reset - skew + (grace or 0)) / 1000000
  if needed > expires then
    expires = math.ceil(needed + reset / 4000000) + 1
    renewed = expires
  end
  return remaining, retry, reset, pack('<I1I7I7I7I5', 4, now, used, previous, expires), renewed
end
