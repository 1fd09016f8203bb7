/* SPDX-License-Identifier: MIT */
/*
 * prelude.js - what scripts expect beside the language: console, timers, process.  It becomes a part of
 * the snapshot, so nothing here may look at the machine before start().
 *
 * Values are shown as Node.js shows them: on one line while that is short, nested to a depth of two.
 */
import * as std from "qjs:std";
import * as os from "qjs:os";

const WIDTH = 80, DEPTH = 2, ITEMS = 100, LINE = 72;
const own = Object.getOwnPropertyDescriptor;
const tagOf = (v) => Object.prototype.toString.call(v).slice(8, -1);

/* ---- Values as text ------------------------------------------------------------------------ */

const escapes = { "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\\": "\\\\" };

function quote(text) {
	const q = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes("`") ? "`" : "'";
	let out = "";
	for (const c of text) {
		const code = c.codePointAt(0);
		if (c === q) out += "\\" + c;
		else if (escapes[c]) out += escapes[c];
		else if (code < 32 || code === 127) out += "\\x" + code.toString(16).toUpperCase().padStart(2, "0");
		else if (code >= 0xd800 && code < 0xe000) out += "\\u" + code.toString(16).toUpperCase();
		else out += c;
	}
	return q + out + q;
}

function primitive(v, nested) {
	switch (typeof v) {
	case "string": return nested ? quote(v) : v;
	case "number": return Object.is(v, -0) ? "-0" : String(v);
	case "bigint": return v + "n";
	case "symbol": return v.toString();
	default: return String(v);
	}
}

const key = (k) => typeof k === "symbol" ? `[${k.toString()}]` : /^[A-Za-z_$][\w$]*$/.test(k) ? k : quote(k);

function className(v) {
	for (let p = Object.getPrototypeOf(v); p !== null; p = Object.getPrototypeOf(p)) {
		const c = own(p, "constructor");
		if (c && typeof c.value === "function" && c.value.name !== "") return c.value.name;
	}
	return null;
}

function functionText(v) {
	const source = Function.prototype.toString.call(v);
	if (source.startsWith("class")) {
		const base = Object.getPrototypeOf(v);
		return `[class ${v.name || "(anonymous)"}${base && base.name ? ` extends ${base.name}` : ""}]`;
	}
	const kind = tagOf(v) === "Function" ? "Function" : tagOf(v);
	return v.name ? `[${kind}: ${v.name}]` : `[${kind} (anonymous)]`;
}

/* Many short items of an array stand in columns. */
function columns(items, indent, numbers) {
	const sizes = items.map((s) => s.length), widest = Math.max(...sizes) + 2;
	const total = sizes.reduce((a, b) => a + b + 2, 0);
	if (widest * 3 + indent >= WIDTH || !(total / widest > 5 || widest <= 8)) return items;
	const bias = Math.max(widest - 2 - Math.sqrt(widest - total / items.length), 1);
	const count = Math.min(Math.round(Math.sqrt(2.5 * bias * items.length) / bias),
			       Math.floor((WIDTH - indent) / widest), 12, 15);
	if (count <= 1) return items;
	const widths = [], rows = [];
	for (let c = 0; c < count; c++) {
		let w = 0;
		for (let i = c; i < items.length; i += count) w = Math.max(w, sizes[i]);
		widths.push(w + 2);
	}
	for (let i = 0; i < items.length; i += count) {
		const row = [];
		const end = Math.min(i + count, items.length);
		for (let j = i; j < end; j++) {
			const last = j === end - 1, text = last ? items[j] : items[j] + ", ";
			const room = widths[j - i] - (last ? 2 : 0);
			row.push(numbers ? text.padStart(room) : last ? text : text.padEnd(room));
		}
		rows.push(row.join(""));
	}
	return rows;
}

function layout(items, prefix, open, close, state, list, numbers) {
	let rows = items;
	const indent = state.indent;
	if (list && items.length > 6) {
		const more = items.at(-1).startsWith("... ") ? 1 : 0;
		const short = items.slice(0, items.length - more), grouped = columns(short, indent, numbers);
		if (grouped !== short) rows = [...grouped, ...items.slice(items.length - more)];
	}
	if (rows === items && state.deepest - state.depth < 3) {
		const start = items.length + indent + open.length + prefix.length + 10;
		const total = items.reduce((a, s) => a + s.length, items.length + start);
		if (total <= WIDTH && !items.some((s) => s.includes("\n")))
			return `${prefix}${open} ${items.join(", ")} ${close}`;
	}
	const pad = "\n" + " ".repeat(indent);
	return `${prefix}${open}${pad}  ${rows.join("," + pad + "  ")}${pad}${close}`;
}

function property(v, k, state) {
	const d = own(v, k);
	if (d === undefined) return "undefined";
	if (d.get) return d.set ? "[Getter/Setter]" : "[Getter]";
	return d.set ? "[Setter]" : show(d.value, state);
}

function properties(v, state, skip) {
	const keys = Reflect.ownKeys(v).filter((k) => !skip(k) && own(v, k)?.enumerable);
	return keys.map((k) => `${key(k)}: ${property(v, k, state)}`);
}

function arrayItems(v, state) {
	const items = [];
	let i = 0;
	for (; i < v.length && items.length < ITEMS; i++) {
		if (Object.hasOwn(v, i)) {
			items.push(property(v, String(i), state));
			continue;
		}
		let holes = 1;
		while (i + 1 < v.length && !Object.hasOwn(v, i + 1)) holes++, i++;
		items.push(`<${holes} empty item${holes > 1 ? "s" : ""}>`);
	}
	if (i < v.length) items.push(`... ${v.length - i} more item${v.length - i > 1 ? "s" : ""}`);
	return items;
}

function viewItems(v) {
	const items = Array.from(v.subarray ? v.subarray(0, ITEMS) : v, (n) => primitive(n, true));
	if (v.length > ITEMS) items.push(`... ${v.length - ITEMS} more items`);
	return items;
}

const index = (k) => typeof k === "string" && /^(0|[1-9]\d*)$/.test(k);

/* Items, brackets and what stands before them, of one object. */
function parts(v, state) {
	const name = className(v), none = () => false;
	const named = (plain, extra = "") => (name === plain ? "" : `${name ?? `[${plain}: null prototype]`} `) + extra;
	if (Array.isArray(v)) {
		const prefix = name === "Array" ? "" : `${name ?? "[Array: null prototype]"}(${v.length}) `;
		return { items: [...arrayItems(v, state), ...properties(v, state, (k) => index(k))], prefix, open: "[", close: "]",
			 list: true, numbers: v.every((n) => typeof n === "number" || typeof n === "bigint") };
	}
	if (ArrayBuffer.isView(v) && !(v instanceof DataView))
		return { items: [...viewItems(v), ...properties(v, state, index)], prefix: `${name}(${v.length}) `, open: "[",
			 close: "]", list: true, numbers: true };
	if (v instanceof Map)
		return { items: [...Array.from(v, ([a, b]) => `${show(a, state)} => ${show(b, state)}`), ...properties(v, state, none)],
			 prefix: `${name}(${v.size}) `, open: "{", close: "}" };
	if (v instanceof Set)
		return { items: [...Array.from(v, (a) => show(a, state)), ...properties(v, state, none)],
			 prefix: `${name}(${v.size}) `, open: "{", close: "}" };
	const rest = properties(v, state, (k) => v instanceof Error && (k === "stack" || k === "message"));
	const tag = v[Symbol.toStringTag];
	const suffix = typeof tag === "string" && tag !== "" && tag !== name ? `[${tag}] ` : "";
	if (typeof v === "function") return { items: rest, prefix: functionText(v), bare: true, open: "{", close: "}" };
	if (v instanceof Error) return { items: rest, prefix: errorText(v, { ...state, indent: state.indent - 2 }), bare: true, open: "{", close: "}" };
	if (v instanceof RegExp) return { items: rest, prefix: String(v), bare: true, open: "{", close: "}" };
	if (v instanceof Date)
		return { items: rest, prefix: isNaN(v) ? "Invalid Date" : v.toISOString(), bare: true, open: "{", close: "}" };
	if (v instanceof Promise) return { items: ["<pending or settled>", ...rest], prefix: "Promise ", open: "{", close: "}" };
	if (v instanceof Number || v instanceof String || v instanceof Boolean)
		return { items: properties(v, state, (k) => index(k)), prefix: `[${name}: ${primitive(v.valueOf(), true)}]`, bare: true,
			 open: "{", close: "}" };
	if (v instanceof ArrayBuffer)
		return { items: [`byteLength: ${v.byteLength}`, ...rest], prefix: `${name} `, open: "{", close: "}" };
	if (v instanceof WeakMap || v instanceof WeakSet)
		return { items: ["<items unknown>"], prefix: `${name} `, open: "{", close: "}" };
	if (tagOf(v) === "Arguments") return { items: arrayItems(v, state), prefix: "[Arguments] ", open: "[", close: "]", list: true };
	return { items: rest, prefix: named("Object", suffix), open: "{", close: "}" };
}

function errorText(e, state) {
	let stack = typeof e.stack === "string" ? e.stack.replace(/^.*\(prelude:.*\n?/gm, "").trimEnd() : "";
	let head;
	try { head = String(e); } catch { head = "Error"; }
	if (stack !== "" && !stack.startsWith(head)) stack = `${head}\n${stack}`;
	if (stack === "") stack = `[${head}]`;
	const pad = " ".repeat(state.indent);
	stack = pad === "" ? stack : stack.replaceAll("\n", "\n" + pad);
	return Object.hasOwn(e, "cause") && state.depth < 8 ?
		`${stack} {\n${pad}  [cause]: ${show(e.cause, { ...state, indent: state.indent + 2 })}\n${pad}}` : stack;
}

function show(v, state) {
	if (v === null || (typeof v !== "object" && typeof v !== "function")) return primitive(v, true);
	if (state.seen.includes(v)) {
		state.circular.add(v);
		return "[Circular *1]";
	}
	const tag = Array.isArray(v) ? "Array" : className(v) ?? "Object: null prototype";
	if (state.depth > state.limit && typeof v === "object" && !(v instanceof Error)) return `[${tag}]`;
	const inner = { ...state, seen: [...state.seen, v], depth: state.depth + 1, indent: state.indent + 2, deepest: state.depth };
	const p = parts(v, inner);
	state.deepest = Math.max(state.deepest, inner.deepest);
	const here = { ...inner, depth: state.depth, indent: state.indent };
	const mark = state.circular.has(v) ? "<ref *1> " : "";
	if (p.items.length === 0) return mark + (p.bare ? p.prefix : `${p.prefix}${p.open}${p.close}`);
	return mark + layout(p.items, p.bare ? p.prefix + " " : p.prefix, p.open, p.close, here, p.list, p.numbers);
}

const inspect = (v, depth = DEPTH) =>
	show(v, { seen: [], depth: 0, limit: depth === null ? Infinity : depth, indent: 0, deepest: 0, circular: new Set() });

/* "%s of %d" and what follows it, as the methods of console have it. */
function format(args) {
	let out = [], i = 0;
	if (typeof args[0] === "string" && args.length > 1 && args[0].includes("%")) {
		i = 1;
		out.push(args[0].replace(/%[sdifjoOc%]/g, (m) => {
			if (m === "%%") return "%";
			if (i >= args.length) return m;
			const v = args[i++];
			switch (m) {
			case "%s": return typeof v === "object" && v !== null ? inspect(v, 0) : primitive(v, false);
			case "%d": return typeof v === "object" ? "NaN" : typeof v === "bigint" ? v + "n" : String(Number(v));
			case "%i": return typeof v === "object" ? "NaN" : String(parseInt(v, 10));
			case "%f": return String(parseFloat(v));
			case "%j": return JSON.stringify(v);
			case "%c": return "";
			default: return inspect(v, 4);
			}
		}));
	}
	for (; i < args.length; i++) out.push(typeof args[i] === "string" ? args[i] : inspect(args[i]));
	return out.join(" ");
}

/* ---- console -------------------------------------------------------------------------------- */

let groups = "";
const counts = new globalThis.Object(), timers = new globalThis.Object();

function print(file, args) {
	let text = args.length === 1 && typeof args[0] === "string" ? args[0] : format(args);
	if (groups !== "") text = groups + text.replaceAll("\n", "\n" + groups);
	file.puts((text.isWellFormed() ? text : text.toWellFormed()) + "\n");
}

const log = (...args) => print(std.out, args);
const warn = (...args) => (std.out.flush(), print(std.err, args));

function table(data) {
	if (data === null || typeof data !== "object") return log(data);
	const rows = Object.entries(data), head = ["(index)"];
	let values = false;
	for (const [, r] of rows)
		if (r !== null && typeof r === "object") {
			for (const k of Object.keys(r)) if (!head.includes(k)) head.push(k);
		} else values = true;
	const lines = rows.map(([k, r]) => {
		const object = r !== null && typeof r === "object";
		const line = [k, ...head.slice(1).map((c) => object && Object.hasOwn(r, c) ? inspect(r[c], 0) : "")];
		if (values) line.push(object ? "" : inspect(r));
		return line;
	});
	if (values) head.push("Values");
	const widths = head.map((h, i) => Math.max(h.length, ...lines.map((l) => l[i].length)) + 2);
	const rule = (a, b, c) => a + widths.map((w) => "─".repeat(w)).join(b) + c;
	const row = (cells) => "│" + cells.map((s, i) => ` ${s}`.padEnd(widths[i])).join("│") + "│";
	log([rule("┌", "┬", "┐"), row(head), rule("├", "┼", "┤"), ...lines.map(row), rule("└", "┴", "┘")].join("\n"));
}

const elapsed = (label) => {
	const ms = performance.now() - timers[label];
	return ms >= 1000 ? `${label}: ${(ms / 1000).toFixed(3)}s` : `${label}: ${ms.toFixed(3)}ms`;
};

const hide = (object, members) => {
	for (const [name, value] of Object.entries(members))
		Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });
};

globalThis.console = {
	log, info: log, debug: log, warn, error: warn, table,
	dir: (v, options) => log(typeof v === "string" ? quote(v) : inspect(v, options?.depth === undefined ? DEPTH : options.depth)),
	trace: (...args) => warn(`Trace${args.length ? ": " + format(args) : ""}\n${new Error().stack.split("\n").slice(1).join("\n").trimEnd()}`),
	assert: (ok, ...args) => ok || warn(args.length ? `Assertion failed: ${format(args)}` : "Assertion failed"),
	count: (label = "default") => log(`${label}: ${counts[label] = (counts[label] ?? 0) + 1}`),
	countReset: (label = "default") => void delete counts[label],
	time: (label = "default") => void (timers[label] = performance.now()),
	timeLog: (label = "default", ...args) => label in timers && log(elapsed(label), ...args),
	timeEnd: (label = "default") => { if (label in timers) log(elapsed(label)); delete timers[label]; },
	group: (...args) => { if (args.length) log(...args); groups += "  "; },
	groupCollapsed: (...args) => globalThis.console.group(...args),
	groupEnd: () => void (groups = groups.slice(2)),
};

/* ---- Timers: with arguments, in the order in which they are due -------------------------------- */

let timerCount = 0, alarm = null;
const waiting = new globalThis.Map();

/* One timer of os for the nearest of ours. */
function arm() {
	if (alarm !== null) os.clearTimeout(alarm);
	alarm = null;
	let nearest = Infinity;
	for (const t of waiting.values()) nearest = Math.min(nearest, t.due);
	if (nearest < Infinity) alarm = os.setTimeout(ring, Math.max(0, Math.ceil(nearest - performance.now())));
}

/* Calls the first that is due; jobs run between two of them. */
function ring() {
	alarm = null;
	const now = performance.now();
	let first = null;
	for (const t of waiting.values()) if (t.due <= now && (first === null || t.due < first.due)) first = t;
	if (first !== null) {
		if (first.every === null) waiting.delete(first.id);
		else first.due = now + first.every;
	}
	arm();
	if (first !== null) first.call(...first.args);
}

function add(call, ms, repeat, args) {
	if (typeof call !== "function") throw new TypeError("the callback of a timer must be a function");
	let wait = Number(ms);
	if (!(wait >= 1 && wait < 2 ** 31)) wait = ms === -1 ? 0 : 1;
	const id = ++timerCount;
	waiting.set(id, { id, call, args, every: repeat ? wait : null, due: performance.now() + Math.trunc(wait) });
	arm();
	return id;
}

function clear(id) {
	if (waiting.delete(Number(id))) arm();
}

hide(globalThis, {
	setTimeout: (f, ms, ...args) => add(f, ms === -1 ? 1 : ms, false, args),
	setInterval: (f, ms, ...args) => add(f, ms === -1 ? 1 : ms, true, args),
	setImmediate: (f, ...args) => add(f, -1, false, args),
	clearTimeout: clear, clearInterval: clear, clearImmediate: clear, std, os,
});

/* ---- Text ------------------------------------------------------------------------------------ */

class TextEncoder {
	get encoding() { return "utf-8"; }
	encode(text = "") {
		const out = [];
		for (const c of String(text).toWellFormed()) {
			const n = c.codePointAt(0);
			if (n < 0x80) out.push(n);
			else if (n < 0x800) out.push(0xc0 | n >> 6, 0x80 | n & 63);
			else if (n < 0x10000) out.push(0xe0 | n >> 12, 0x80 | n >> 6 & 63, 0x80 | n & 63);
			else out.push(0xf0 | n >> 18, 0x80 | n >> 12 & 63, 0x80 | n >> 6 & 63, 0x80 | n & 63);
		}
		return new Uint8Array(out);
	}
}

class TextDecoder {
	#fatal;
	constructor(label = "utf-8", options = {}) {
		if (!/^utf-?8$/i.test(label)) throw new RangeError(`the encoding "${label}" is not supported: only utf-8 is`);
		this.#fatal = Boolean(options.fatal);
	}
	get encoding() { return "utf-8"; }
	decode(data = new Uint8Array()) {
		const b = data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
		let out = "", i = b[0] === 0xef && b[1] === 0xbb && b[2] === 0xbf ? 3 : 0;
		while (i < b.length) {
			const n = b[i] < 0x80 ? 1 : b[i] >= 0xf0 && b[i] < 0xf5 ? 4 : b[i] >= 0xe0 && b[i] < 0xf0 ? 3 : b[i] >= 0xc2 && b[i] < 0xe0 ? 2 : 0;
			let code = n === 1 ? b[i] : n === 0 ? -1 : b[i] & 0x7f >> n, used = 1;
			for (; used < n && code >= 0; used++) {
				if ((b[i + used] & 0xc0) !== 0x80) { code = -1; break; }
				code = code << 6 | b[i + used] & 63;
				if (used === 1 && ((n === 3 && (code < 0x20 || (code >= 0x360 && code < 0x380))) || (n === 4 && (code < 0x10 || code > 0x10f)))) {
					code = -1;
					break;
				}
			}
			if (code < 0) {
				if (this.#fatal) throw new TypeError("the data is not valid UTF-8");
				out += "\ufffd";
				i += used;
			} else {
				out += String.fromCodePoint(code);
				i += n;
			}
		}
		return out;
	}
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
function btoa(data) {
	const s = String(data);
	let out = "";
	for (let i = 0; i < s.length; i += 3) {
		const n = [0, 1, 2].map((j) => i + j < s.length ? s.charCodeAt(i + j) : 0);
		if (n.some((c) => c > 255)) throw new TypeError("btoa: the string has characters above U+00FF");
		out += letters[n[0] >> 2] + letters[(n[0] & 3) << 4 | n[1] >> 4] +
			(i + 1 < s.length ? letters[(n[1] & 15) << 2 | n[2] >> 6] : "=") + (i + 2 < s.length ? letters[n[2] & 63] : "=");
	}
	return out;
}
function atob(data) {
	let s = String(data).replace(/[\t\n\f\r ]/g, ""), out = "", bits = 0, have = 0;
	if (s.length % 4 === 0) s = s.replace(/==?$/, "");
	if (s.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(s)) throw new TypeError("atob: the string is not correctly encoded");
	for (const c of s) {
		bits = bits << 6 | letters.indexOf(c);
		have += 6;
		if (have >= 8) {
			have -= 8;
			out += String.fromCharCode(bits >> have & 255);
			bits &= (1 << have) - 1;
		}
	}
	return out;
}

function structuredClone(value) {
	const seen = new Map();
	const fail = (v) => { throw new TypeError(`${typeof v === "symbol" ? v.toString() : functionText(v)} could not be cloned`); };
	const clone = (v) => {
		if (typeof v === "function" || typeof v === "symbol") fail(v);
		if (v === null || typeof v !== "object") return v;
		if (seen.has(v)) return seen.get(v);
		const keep = (c) => (seen.set(v, c), c);
		if (v instanceof Date) return keep(new Date(v));
		if (v instanceof RegExp) return keep(new RegExp(v));
		if (v instanceof ArrayBuffer) return keep(v.slice(0));
		if (v instanceof DataView) return keep(new DataView(clone(v.buffer), v.byteOffset, v.byteLength));
		if (ArrayBuffer.isView(v)) return keep(new v.constructor(clone(v.buffer), v.byteOffset, v.length));
		if (v instanceof Map) { const c = keep(new Map()); for (const [a, b] of v) c.set(clone(a), clone(b)); return c; }
		if (v instanceof Set) { const c = keep(new Set()); for (const a of v) c.add(clone(a)); return c; }
		if (v instanceof Promise || v instanceof WeakMap || v instanceof WeakSet) throw new TypeError(`${className(v)} could not be cloned`);
		let c;
		if (v instanceof Error) {
			c = keep(new (globalThis[v.name] ?? Error)(v.message));
			if (Object.hasOwn(v, "cause")) c.cause = clone(v.cause);
			return c;
		}
		c = keep(Array.isArray(v) ? new Array(v.length) : {});
		for (const k of Object.keys(v)) c[k] = clone(v[k]);
		return c;
	};
	return clone(value);
}

hide(globalThis, { TextEncoder, TextDecoder, atob, btoa, structuredClone });

/* ---- process: the parts of Node.js's that scripts use most ----------------------------------- */

const output = (file) => ({ isTTY: false, write: (text) => {
	if (typeof text === "string") file.puts(text);
	else file.write(text.buffer, text.byteOffset, text.byteLength);
	file.flush();
	return true;
} });
const exitHandlers = [];
let exiting = false;

function exit(code) {
	const n = Number(code ?? process.exitCode ?? 0) & 255;
	if (!exiting) {
		exiting = true;
		for (const f of exitHandlers) f(n);
	}
	std.exit(n);
}

const process = {
	argv: [], env: {}, exitCode: undefined, platform: "linux", arch: "wasm32", pid: 1, exit,
	version: "", versions: { quickjs: "0.17.0" }, stdout: output(std.out), stderr: output(std.err),
	cwd: () => os.getcwd()[0], chdir: (path) => {
		const code = os.chdir(path);
		if (code !== 0) throw new Error(`chdir: ${std.strerror(-code)}, "${path}"`);
	},
	hrtime: Object.assign((before) => {
		const ms = performance.now(), s = Math.floor(ms / 1000), ns = Math.floor((ms - s * 1000) * 1e6);
		if (!before) return [s, ns];
		return ns < before[1] ? [s - before[0] - 1, ns - before[1] + 1e9] : [s - before[0], ns - before[1]];
	}, { bigint: () => BigInt(Math.floor(performance.now() * 1e6)) }),
	uptime: () => performance.now() / 1000,
	nextTick: (f, ...args) => queueMicrotask(() => f(...args)),
	on: (event, f) => { if (event === "exit") exitHandlers.push(f); return process; },
	memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0 }),
};
process.once = process.addListener = process.on;
Object.defineProperty(process, Symbol.toStringTag, { value: "process" });
hide(globalThis, { process, global: globalThis });

/* ---- For the driver ---------------------------------------------------------------------------- */

function start(args) {
	globalThis.scriptArgs = args;
	process.argv = ["/usr/bin/node", ...args];
	process.env = std.getenviron();
	exiting = false;
}

globalThis.__guest = {
	/* What stands on stderr of an error that nobody caught. */
	describe(error) {
		if (error instanceof Error || (typeof error === "object" && error !== null && typeof error.stack === "string"))
			return error.stack ? inspect(error) : String(error);
		return `Uncaught ${inspect(error)}`;
	},
	inspect,
	start,
	/* In a worker that waits: what a short program uses, and nothing is written anywhere; start() comes again. */
	rehearse() {
		const nowhere = { puts() {} };
		start(["/run/code/main"]);
		print(nowhere, ["a"]);
		print(nowhere, ["%s", 1, { b: [1, "c"] }]);
		std.out.flush();
	},
	/* Once nothing is left to do: the exit code that the script wishes. */
	finish() {
		if (exitHandlers.length) exit(process.exitCode);
		return Number(process.exitCode ?? 0) & 255;
	},
};
