-- calendarwindow decides by the grants in the window of the calendar that now is in. used counts
-- the grants in the window of at. Twin of fixed_window.go.
--
-- The process sends when its window began, in microseconds, and the lengths of that and the next
-- one, in seconds: the first x 2^26 + the second. Before that, all that is kept counts. After it,
-- all since then, for the longer of the two and a quarter more.
local function calendarwindow(state, now, cost, charge, capacity, began, lengths, grace, since)
  local tag, at, used, expires = 6, 0, 0, 0
  if state then
    if #state ~= 20 then
      return
    end
    tag, at, used, expires = unpack('<I1I7I7I5', state)
    if tag ~= 6 then
      return
    end
  end
  local skew = at > now and at - now or 0
  now = now + skew
  local first, second = math.floor(lengths / 67108864) * 1000000, lengths % 67108864 * 1000000
  local start, ends = began, began + first
  if now < began then
    start, ends = 0, began
  elseif now >= ends + second then
    start, ends = ends + second, now + math.floor(math.max(first, second) * 5 / 4)
  elseif now >= ends then
    start, ends = ends, ends + second
  end
  if start > at then
    used = 0
  end
  local ask = cost == 0 and 1 or cost
  local retry, reset = 0, 0
  if ask > 0 and ask > capacity - used then
    charge = charge == 'force'
    used = charge and math.min(used + ask, MAX) or used
    retry = ask > capacity and NEVER or skew + ends - now
  elseif charge then
    used = used + ask
    if used < 0 then
      used = 0
    end
  end
  if used > 0 then
    reset = skew + ends - now
  end
  local remaining = capacity - used
  local needed = (now + reset - skew + (grace or 0)) / 1000000
  local later = math.ceil(needed + reset / 4000000) + 1
  if not charge then
    if cost ~= 0 and used > 0 and ends > expires * 1000000 then -- it was another calendar
      prolonged = later
    end
    return remaining, retry, reset
  elseif used == 0 and not since then
    return remaining, retry, reset, ''
  elseif needed <= expires then
    return remaining, retry, reset, pack('<I1I7I7I5', 6, now, used, expires)
  end
  return remaining, retry, reset, pack('<I1I7I7I5', 6, now, used, later), later
end
