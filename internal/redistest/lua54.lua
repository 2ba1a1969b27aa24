-- Runs the scripts of this package under Lua 5.4, with the names of 5.1 and the library struct,
-- whose numbers are floats, over a table in place of Redis.
--
-- Each line of the input is a step, of fields in hex: the text of a script, the number of keys, the
-- keys and the arguments. The answer is a line: what the script returned, then the value of each
-- key, '-' for none, and its lifetime in milliseconds, -1 for none.
assert(_VERSION == 'Lua 5.4', _VERSION)
local values, lives = {}, {}

unpack = table.unpack
struct = {}

local function size(format, at)
  local letter, digits, next = format:match('^<?([Ii])(%d+)()', at)
  return letter, tonumber(digits), next
end

function struct.size(format) return string.packsize(format) end

function struct.pack(format, ...)
  local text, at = {}, 1
  for _, value in ipairs({...}) do
    local _, bytes, next = size(format, at)
    value = value + 0.0
    value = math.tointeger(value < 0 and math.ceil(value) or math.floor(value))
    text[#text + 1] = string.pack('<i8', value):sub(1, bytes)
    at = next
  end
  assert(at == #format + 1)
  return table.concat(text)
end

function struct.unpack(format, text, place)
  local found, at = {}, 1
  place = math.tointeger(place or 1)
  while at <= #format do
    local letter, bytes, next = size(format, at)
    found[#found + 1] = string.unpack('<' .. letter .. bytes, text, place) + 0.0
    at, place = next, place + bytes
  end
  found[#found + 1] = place
  return table.unpack(found)
end

-- whole returns an argument of a command that is a number: not a text such as 12.0 or 1e+15.
local function whole(arg)
  assert(math.type(arg) == 'integer' or tostring(arg):match('^-?%d+$'), 'argument ' .. tostring(arg))
  return math.tointeger(tonumber(arg))
end

local commands = {}

function commands.GET(key) return values[key] or false end

function commands.MGET(...)
  local found = {}
  for i, key in ipairs({...}) do
    found[i] = values[key] or false
  end
  return found
end

function commands.SET(key, value, unit, life, nx)
  assert(nx == nil or nx == 'NX')
  if nx and values[key] then
    return false
  end
  values[key], lives[key] = value, whole(life) * (unit == 'EX' and 1000 or 1)
  assert(lives[key] > 0 and (unit == 'EX' or unit == 'PX'))
  return {ok = 'OK'}
end

function commands.SETRANGE(key, offset, value)
  assert(whole(offset) == 0)
  values[key] = value .. (values[key] or ''):sub(#value + 1)
  return #values[key]
end

function commands.DEL(key)
  local had = values[key]
  values[key], lives[key] = nil, nil
  return had and 1 or 0
end

function commands.EXISTS(key) return values[key] and 1 or 0 end
function commands.PTTL(key) return values[key] and (lives[key] or -1) or -2 end
function commands.PUBLISH() return 0 end

redis = {}
function redis.call(name, ...) return commands[name](...) end
function redis.pcall(name, ...) return commands[name](...) end
function redis.error_reply(text) return {err = text} end

setmetatable(_G, {
  __index = function(_, name) error('no global ' .. name) end,
  __newindex = function(_, name) error('new global ' .. name) end,
})

local function bytes(hex)
  return (hex:gsub('..', function(digits) return string.char(tonumber(digits, 16)) end))
end

local function hex(text)
  return (text:gsub('.', function(c) return string.format('%02x', c:byte()) end))
end

-- answer returns what a script returned, as text. A float is no whole number on the wire.
local function answer(value)
  if type(value) == 'string' then
    return 's' .. value
  elseif math.type(value) then
    return math.type(value) .. ' ' .. value
  elseif value.err then
    return 'e' .. value.err
  end
  local texts = {}
  for i, one in ipairs(value) do
    texts[i] = answer(one)
  end
  return table.concat(texts, ',')
end

for line in io.lines() do
  local fields = {}
  for field in line:gmatch('%S+') do
    fields[#fields + 1] = bytes(field:sub(2)) -- after a mark, so that no field is empty
  end
  local keys, args, count = {}, {}, tonumber(fields[2])
  for i = 3, #fields do
    local list = i <= 2 + count and keys or args
    list[#list + 1] = fields[i]
  end
  rawset(_G, 'KEYS', keys)
  rawset(_G, 'ARGV', args)
  local out = {hex(answer(assert(load(fields[1]))()))}
  for i, key in ipairs(keys) do
    out[2 * i] = values[key] and '.' .. hex(values[key]) or '-'
    out[2 * i + 1] = values[key] and tostring(lives[key] or -1) or '-'
  end
  print(table.concat(out, ' '))
  io.flush()
end
