-- tokenbucket decides by a bucket that refills continuously. used counts the units missing
-- from a full bucket at the instant at, full those that it holds. Twin of token_bucket.go.
local function tokenbucket(state, now, cost, charge, capacity, rate, unit, grace, since)
  local full = capacity * unit
  local at, used, expires = 0, 0, 0
  if state then
    if #state ~= 27 then
      return
    end
    local tag, oldfull
    tag, at, used, oldfull, expires = unpack('<I1I7I7I7I5', state)
    if tag ~= 1 then
      return
    end
    if oldfull ~= full then -- the numbers of the limit have changed: the used fraction is kept
      if oldfull < 1 or oldfull > MAX then
        return
      end
      local g, rest = full, oldfull
      while rest ~= 0 do
        g, rest = rest, g % rest
      end
      local product = used * (full / g)
      local most = used > oldfull and math.floor(MAX / 2) or full
      used = math.min(math.ceil(product / (oldfull / g)) + (product > MAX and 1 or 0), most)
      local ends, later = at + used / rate, grace or 0
      if cost ~= 0 and ends > now and ends + later > expires * 1000000 then
        expires = math.ceil((ends + (ends - now) / 4 + later) / 1000000) + 1
        prolonged = expires
      end
    end
  end
  local skew = at > now and at - now or 0
  now = now + skew
  used = used - (now - at) * rate
  if used < 0 then
    used = 0
  end
  local ask = cost == 0 and 1 or cost
  local retry, reset = 0, 0
  if ask > capacity or used + ask * unit > full and ask > 0 then
    charge = charge == 'force'
    used = charge and math.min(used + ask * unit, math.floor(MAX / 2)) or used
    retry = ask > capacity and NEVER or skew + math.ceil((used + ask * unit - full) / rate)
  elseif charge then
    used = used + ask * unit
    if used < 0 then
      used = 0
    end
  end
  if used > 0 then
    reset = skew + math.ceil(used / rate)
  end
  local remaining = math.floor((full - used) / unit)
  if not charge then
    return remaining, retry, reset
  elseif used == 0 and not since then
    return remaining, retry, reset, ''
  end
  local needed = (now + reset - skew + (grace or 0)) / 1000000
  if needed <= expires then
    return remaining, retry, reset, pack('<I1I7I7I7I5', 1, now, used, full, expires)
  end
  expires = math.ceil(needed + reset / 4000000) + 1
  return remaining, retry, reset, pack('<I1I7I7I7I5', 1, now, used, full, expires), expires
end
