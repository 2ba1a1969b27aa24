-- fixedwindow decides by the grants in the window that now is in; windows are aligned to the
-- Unix epoch. used counts the grants in the window of at. Twin of fixed_window.go.
local function fixedwindow(state, now, cost, charge, capacity, period, _, grace, since)
  local tag, at, used, expires = 3, 0, 0, 0
  if state then
    if #state ~= 20 then
      return
    end
    tag, at, used, expires = unpack('<I1I7I7I5', state)
    if tag ~= 3 then
      return
    end
  end
  local skew = at > now and at - now or 0
  now = now + skew
  local elapsed = now % period
  if now - elapsed > at then
    used = 0
  end
  local ask = cost == 0 and 1 or cost
  local retry, reset = 0, 0
  if ask > 0 and ask > capacity - used then
    charge = charge == 'force'
    used = charge and math.min(used + ask, MAX) or used
    retry = ask > capacity and NEVER or skew + period - elapsed
  elseif charge then
    used = used + ask
    if used < 0 then
      used = 0
    end
  end
  if used > 0 then
    reset = skew + period - elapsed
  end
  local remaining = capacity - used
  if not charge then
    return remaining, retry, reset
  elseif used == 0 and not since then
    return remaining, retry, reset, ''
  end
  local needed = (now + reset - skew + (grace or 0)) / 1000000
  if needed <= expires then
    return remaining, retry, reset, pack('<I1I7I7I5', 3, now, used, expires)
  end
  expires = math.ceil(needed + reset / 4000000) + 1
  return remaining, retry, reset, pack('<I1I7I7I5', 3, now, used, expires), expires
end
