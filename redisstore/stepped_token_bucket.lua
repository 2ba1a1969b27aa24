-- steppedtokenbucket decides by a bucket that gains refill tokens at once, at each whole
-- period since it was last full. used counts the tokens missing from a full bucket; step is
-- the latest step, or the moment at which the bucket was first taken from. The state has the
-- numbers that it was charged under. Twin of stepped_token_bucket.go.
local function steppedtokenbucket(state, now, cost, charge, capacity, refill, period, grace, since)
  local at, used, step, expires = 0, 0, 0, 0
  if state then
    if #state ~= 48 then
      return
    end
    local tag, oldcapacity, oldrefill, oldperiod
    tag, at, used, step, oldcapacity, oldrefill, oldperiod, expires =
      unpack('<I1I7I7I7I7I7I7I5', state)
    if tag ~= 2 then
      return
    end
    if oldcapacity ~= capacity or oldrefill ~= refill or oldperiod ~= period then
      if oldcapacity < 1 or oldcapacity > MAX then
        return
      end
      local g, rest = capacity, oldcapacity
      while rest ~= 0 do
        g, rest = rest, g % rest
      end
      local product = used * (capacity / g)
      local most = capacity
      if used > oldcapacity then
        most = math.floor(MAX / 2 / period) * math.min(refill, 1000)
        most = math.max(capacity, math.min(most, math.floor(MAX / 2)))
      end
      used = math.min(math.ceil(product / (oldcapacity / g)) + (product > MAX and 1 or 0), most)
      step = at
      local ends, later = at + math.ceil(used / refill) * period, grace or 0
      if cost ~= 0 and ends > now and ends + later > expires * 1000000 then
        expires = math.ceil((ends + (ends - now) / 4 + later) / 1000000) + 1
        prolonged = expires
      end
    end
  end
  local skew = at > now and at - now or 0
  now = now + skew
  local steps = math.floor((now - step) / period)
  if steps > math.floor(used / refill) or used <= steps * refill then
    step, used = now, 0
  else
    step, used = step + steps * period, used - steps * refill
  end
  local ask = cost == 0 and 1 or cost
  local retry, reset = 0, 0
  if ask > capacity or used + ask > capacity and ask > 0 then
    charge = charge == 'force'
    if charge then
      local most = math.floor(MAX / 2 / period) * math.min(refill, 1000)
      most = math.max(capacity, math.min(most, math.floor(MAX / 2)))
      used = math.min(used + ask, most)
    end
    retry = ask > capacity and NEVER
      or skew + math.ceil((used + ask - capacity) / refill) * period - (now - step)
  elseif charge then
    used = used + ask
    if used < 0 then
      used = 0
    end
  end
  if used > 0 then
    reset = skew + math.ceil(used / refill) * period - (now - step)
  end
  local remaining, renewed = capacity - used, nil
  if not charge then
    return remaining, retry, reset
  elseif used == 0 and not since then
    return remaining, retry, reset, ''
  end
  local needed = (now + reset - skew + (grace or 0)) / 1000000
  if needed > expires then
    expires = math.ceil(needed + reset / 4000000) + 1
    renewed = expires
  end
  step = used > 0 and step or now
  return remaining, retry, reset,
    pack('<I1I7I7I7I7I7I7I5', 2, now, used, step, capacity, refill, period, expires), renewed
end
