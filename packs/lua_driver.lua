-- SPDX-License-Identifier: MIT
-- lua_driver.lua - evaluates what comes over the control descriptor; see docs/internals/driver-protocol.md.
-- A guest of WebAssembly brings the functions that the module has elsewhere.
local module, why = ...
local MODULE = "@MODULE_HEX@"
local TEXT_MAX = 65536

-- What code may replace is kept here.
local load, xpcall, tostring, tonumber, select, type = load, xpcall, tostring, tonumber, select, type
local format, concat, pack = string.format, table.concat, table.pack
local sub, find, match, gsub, char = string.sub, string.find, string.match, string.gsub, string.char
local getmetatable, rawget = debug.getmetatable, rawget
local traceback, open, remove, tmpname = debug.traceback, io.open, os.remove, os.tmpname
local out, err, input = io.stdout, io.stderr, io.stdin
local flush, write, seek = out.flush, out.write, out.seek
local env = _G
local OURS = debug.getinfo(1, "S").short_src

local function with_file(data, use)
	local name = tmpname()
	local file = open(name, "wb")
	file:write(data)
	file:close()
	local result = pack(use(name))
	remove(name)
	return table.unpack(result)
end

if type(module) ~= "function" then
	module, why = with_file(gsub(MODULE, "%x%x", function(x) return char(tonumber(x, 16)) end),
		function(name) return package.loadlib(name, "luaopen_control") end)
end
if not module then
	error("this Lua loads no modules, which a session needs: " .. tostring(why), 0)
end
local read, send, listen, deaf, become_input, waiting, rests = module()
if not read then error("the control descriptor cannot be moved", 0) end

-- ---- frames ------------------------------------------------------------------------------------
local nonce, buffered = "", ""

local function fill(least)
	if #buffered >= least then return end
	local parts, have = { buffered }, #buffered
	while have < least do
		local got = read()
		if got == "" then os.exit(0) end -- the host has gone
		parts[#parts + 1] = got
		have = have + #got
	end
	buffered = concat(parts)
end

local function receive()
	fill(44)
	local kind, given, length = sub(buffered, 1, 1), sub(buffered, 3, 34), tonumber(sub(buffered, 36, 43), 16)
	fill(44 + length)
	local payload = sub(buffered, 45, 44 + length)
	buffered = sub(buffered, 45 + length)
	return kind, given, payload
end

local function frame(kind, payload)
	send(kind .. " " .. nonce .. format(" %08x\n", #payload) .. payload)
end

-- ---- code --------------------------------------------------------------------------------------
-- As the console has it: an expression first, then statements.  Beyond it: statements whose last line
-- is an expression.
local function compile(source, partial)
	if partial and sub(source, 1, 1) == "=" then source = "return " .. sub(source, 2) end
	local code, problem = load("return " .. source, "=stdin")
	if code then return code end
	code, problem = load(source, "=stdin")
	if code or partial then return code, problem end
	local before, last = match(source, "^(.*\n)([^\n]*%S[^\n]*)%s*$")
	if before then
		code = load(before .. "return " .. last, "=stdin")
	end
	return code, problem
end

-- Of an error, as the console says it.
local function said(message)
	local meta, ok, text = getmetatable(message), false, nil
	if type(message) == "string" or type(message) == "number" then return tostring(message) end
	if type(meta) == "table" and rawget(meta, "__tostring") then ok, text = pcall(tostring, message) end
	return ok and type(text) == "string" and text or "(error object is a " .. type(message) .. " value)"
end

local function handler(message)
	deaf()
	local trace = sub(traceback("", 2), 2)
	local at = find(trace, "\n\t" .. OURS .. ":", 1, true) -- what is ours, and all below it
	trace = gsub(at and sub(trace, 1, at - 1) or trace, "in upvalue 'code'$", "in main chunk")
	return { message = said(message), trace = trace }
end

local function complain(text)
	write(err, text, "\n")
end

local function cut(text)
	return #text > TEXT_MAX and sub(text, 1, TEXT_MAX) or text
end

-- Was the code interrupted before it began?  Once it has, signals tell.
local function told_to_stop()
	if buffered == "" and not waiting() then return false end
	fill(44)
	return sub(buffered, 1, 34) == "I " .. nonce
end

local function call(code)
	local function guarded()
		listen()
		if told_to_stop() then error("interrupted!", 0) end
		local results = pack(code())
		deaf()
		return results
	end
	local results = pack(xpcall(guarded, handler))
	deaf()
	return results[1], results[2]
end

local function show(results)
	local ok, words = pcall(function()
		local list = {}
		for i = 1, results.n do list[i] = tostring(results[i]) end
		return concat(list, "\t")
	end)
	local fine, problem = pcall(env.print, table.unpack(results, 1, results.n))
	if not fine then complain("error calling 'print' (" .. said(problem) .. ")") end
	if ok then frame("V", cut(words)) end
end

local function finish(status)
	pcall(flush, out)
	pcall(flush, err)
	frame("D", tostring(status))
end

local function fail(message, trace)
	pcall(flush, out)
	complain(trace and message .. "\n" .. trace or message)
	frame("X", cut(message))
	finish(1)
end

local function evaluate(source, partial)
	local code, problem = compile(source, partial)
	if not code then
		if partial and sub(problem, -5) == "<eof>" then return frame("U", "") end
		return fail(problem)
	end
	local fine, results = call(code)
	if not fine then return fail(results.message, results.trace) end
	if results.n > 0 then show(results) end
	finish(0)
end

local function step()
	local kind, payload
	kind, nonce, payload = receive()
	if kind == "S" then frame("H", "1 nul int lua " .. match(_VERSION, "%S+$")) end
	if kind ~= "E" then return end
	local flags, length = tonumber(sub(payload, 1, 2), 16), tonumber(sub(payload, 3, 10), 16)
	local data = sub(payload, 11 + length)
	if data ~= "" then
		with_file(data, become_input)
		seek(input, "set")
	end
	evaluate(sub(payload, 11, 10 + length), flags % 2 == 1)
	if data ~= "" then
		become_input("/dev/null")
		seek(input, "set")
	end
end

-- What has come, and what has come with it.
local function turn()
	repeat step() until buffered == ""
end

arg = { [0] = "lua" }
out:setvbuf("line")
if rests then return turn end -- and somebody calls it
while true do turn() end
