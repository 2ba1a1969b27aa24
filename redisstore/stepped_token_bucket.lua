-- steppedtokenbucket decides by a bucket that gains refill tokens at once, at each whole
-- period since it was last full. used counts the tokens missing from a full bucket; step is
-- the latest step, or the moment at which the bucket was first taken from. The state has the
-- numbers that it was charged under. Twin of stepped_token_bucket.go.
local function steppedtokenbucket(state, now, cost, charge, capacity, refill, period)
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
        most = max(capacity, min(floor(MAX / 2 / period) * min(refill, 1000), floor(MAX / 2)))
      end
      used = min(ceil(product / (oldcapacity / g)) + (product > MAX and 1 or 0), most)
      step = at
      local ends, kept = at + ceil(used / refill) * period, changed[k] or values[k]
      if cost ~= 0 and ends > now and ends + grace > expires * 1000000 then -- also if it is denied
        expires, expiries = ceil((ends + (ends - now) / 4 + grace) / 1000000) + 1, expiries or {}
        expiries[k], changed[k] = expires, kept:sub(1, -6) .. pack('<I5', expires)
      end
    end
  end
  local skew = at > now and at - now or 0
  now = now + skew
  local steps = floor((now - step) / period)
  if steps > floor(used / refill) or used <= steps * refill then
    step, used = now, 0
  else
    step, used = step + steps * period, used - steps * refill
  end
  local ask = cost == 0 and 1 or cost
  local retry, reset = 0, 0
  if ask > capacity or used + ask > capacity and ask > 0 then
    charge = charge == 'force'
    if charge then
      local most = min(floor(MAX / 2 / period) * min(refill, 1000), floor(MAX / 2))
      used = min(used + ask, max(capacity, most))
    end
    retry = ask > capacity and NEVER
      or skew + ceil((used + ask - capacity) / refill) * period - (now - step)
  elseif charge then
    used = max(used + ask, 0)
  end
  if used > 0 then
    reset = skew + ceil(used / refill) * period - (now - step)
  end
  local remaining, renewed = capacity - used, nil
  if not charge then
    return remaining, retry, reset
  elseif used == 0 and not since then
    return remaining, retry, reset, ''
  end
  local needed = (now + reset - skew + grace) / 1000000
  if needed > expires then
    expires = ceil(needed + reset / 4000000) + 1
    renewed = expires
  end
  step = used > 0 and step or now
  return remaining, retry, reset,
    pack('<I1I7I7I7I7I7I7I5', 2, now, used, step, capacity, refill, period, expires), renewed
end

algorithms[2] = steppedtokenbucket
