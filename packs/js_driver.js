// SPDX-License-Identifier: MIT
// js_driver.js - evaluates what comes over the control descriptor; see docs/internals/driver-protocol.md.
//
// Node's own console does the evaluating (module "repl"): global scope, await, unfinished input.
'use strict';
{
	const MODULE = '@MODULE_HEX@';
	const TEXT_MAX = 65536;
	const INTERRUPTED = 'ERR_SCRIPT_EXECUTION_INTERRUPTED';
	const fs = require('fs');
	const net = require('net');
	const os = require('os');
	const path = require('path');
	const util = require('util');
	const { Script } = require('vm');
	const { PassThrough, Writable } = require('stream');
	const { randomBytes } = require('crypto');
	const { inspect } = util;
	const { from, concat } = Buffer;
	const { readSync, writeSync } = fs;
	const { process } = globalThis; // code may take it away
	const later = setImmediate; // or name something else so

	// An interrupt that strikes within a stream's machinery leaves it dead: these have none.
	const writeAll = (fd, data) => {
		for (let at = 0; at < data.length;) {
			try {
				at += writeSync(fd, data, at);
			} catch (error) {
				if (error.code !== 'EAGAIN') return error;
				Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
			}
		}
		return null;
	};
	class Direct extends Writable {
		constructor(fd) {
			super({ decodeStrings: false });
			this.fd = fd;
		}

		write(data, encoding, done) {
			const bytes = typeof data === 'string'
				? from(data, typeof encoding === 'string' ? encoding : 'utf8') : data;
			const error = writeAll(this.fd, bytes);
			const then = typeof encoding === 'function' ? encoding : done;
			if (typeof then === 'function') process.nextTick(then, error);
			return true;
		}
	}
	for (const [name, fd] of [['stdout', 1], ['stderr', 2]]) {
		const value = new Direct(fd);
		Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => value });
	}
	const outWrite = (text) => writeAll(1, from(text, 'utf8'));
	const errWrite = (text) => writeAll(2, from(text, 'utf8'));

	// Loading the module moves descriptor 3 away; that it is no module of Node's does not matter.
	const move = () => {
		const file = path.join(os.tmpdir(), `.sandbox-${process.pid}-${randomBytes(8).toString('hex')}`);
		fs.writeFileSync(file, from(MODULE, 'hex'), { flag: 'wx', mode: 0o600 });
		try {
			process.dlopen({ exports: {} }, file);
		} catch {
			// "did not self-register"
		}
		fs.unlinkSync(file);
		for (const fd of [900, 240, 70]) {
			try {
				if (fs.fstatSync(fd).isSocket()) return fd;
			} catch {
				continue;
			}
		}
		throw new Error('this Node loads no modules, which a session needs');
	};
	const controlFd = move();
	const control = new net.Socket({ fd: controlFd });
	const send = control.write.bind(control);

	// ---- frames ---------------------------------------------------------------------------------
	let nonce = '';
	let pieces = []; // what has come and is not taken, and how much
	let have = 0;
	let current = null; // the evaluation under way: { answered }
	const frame = (kind, payload) => {
		const data = from(payload, 'utf8');
		send(concat([from(`${kind} ${nonce} ${data.length.toString(16).padStart(8, '0')}\n`), data]));
	};
	const cut = (text) => {
		const data = from(text, 'utf8');
		if (data.length <= TEXT_MAX) return text;
		let end = TEXT_MAX;
		while (end > 0 && (data[end] & 0xc0) === 0x80) end--;
		return data.toString('utf8', 0, end);
	};

	// ---- the beginning of code -------------------------------------------------------------------
	// Signals strike only what the vm module has begun, so the last look at whether the code is
	// interrupted already happens within a script of ours, and the code runs within that.
	const watch = process.binding('contextify');
	const GATE = `sandbox_${randomBytes(8).toString('hex')}`;
	const gate = new Script(`${GATE}()`);
	const { defineProperty } = Object;
	const { apply } = Reflect;
	const { then } = Promise.prototype;
	const run = Script.prototype.runInThisContext;
	let beginning = null; // the evaluation whose code comes next
	const toldToStop = () => {
		const more = Buffer.allocUnsafe(64);
		try {
			const n = readSync(controlFd, more);
			pieces.push(more.subarray(0, n));
			have += n;
		} catch {
			// nothing has come
		}
		if (have < 44) return false;
		pieces = [concat(pieces)];
		return pieces[0].toString('latin1', 0, 34) === `I ${nonce}`;
	};
	const begun = (mine, script, options) => {
		delete globalThis[GATE];
		if (toldToStop()) throw { code: INTERRUPTED, told: true };
		try {
			return (mine.result = apply(run, script, [options]));
		} catch (error) {
			mine.threw = true; // null, perhaps, which looks like no error to the console
			throw error;
		}
	};
	Script.prototype.runInThisContext = function runInThisContext(options) {
		const mine = beginning;
		if (mine === null) return apply(run, this, [options]);
		beginning = null;
		defineProperty(globalThis, GATE, { configurable: true, value: () => begun(mine, this, options) });
		try {
			return apply(run, gate, [options]);
		} finally {
			delete globalThis[GATE];
		}
	};

	// ---- the console ----------------------------------------------------------------------------
	// Its domain would take errors away from us; one that does nothing does not.
	const domain = { bind: (fn) => fn, on() {}, once() {}, exit() {}, enter() {}, emit() {},
		removeListener() {}, removeAllListeners() {} };
	const repl = require('repl').start({
		domain,
		input: new PassThrough(),
		output: new Writable({ write: (data, encoding, done) => done() }),
		prompt: '',
		terminal: false,
		useGlobal: true,
		breakEvalOnSigint: true,
	});
	Script.prototype.runInThisContext = run; // the console has ours
	const { Recoverable } = require('repl');
	const evaluate = repl.eval.bind(repl);
	repl.removeAllListeners('exit');
	repl.input.removeAllListeners('keypress');
	const OURS = __filename;

	// Frames of ours, and all below them, are nobody's business.  What an error has besides its stack is shown
	// in braces, which begin behind the last frame.
	const FRAME = /^\s+(at |\.\.\. \d+ lines matching cause)/;
	const INSIDE = /^\s+\.\.\. |\(?node:(vm|repl|domain|internal)/;
	const unwound = (text) => {
		const lines = text.split('\n');
		for (let at = 0; at < lines.length; at++) {
			let end = at;
			while (end < lines.length && FRAME.test(lines[end])) end++;
			const ours = lines.slice(at, end).findIndex((line) => line.includes(OURS) || INSIDE.test(line));
			if (ours >= 0) {
				const last = lines[end - 1];
				lines.splice(at + ours, end - at - ours);
				end = at + ours;
				if (last.endsWith(' {') && end > 0) lines[end - 1] += ' {';
			}
			at = Math.max(at, end - 1);
		}
		return lines.join('\n');
	};
	const writer = (value) => unwound(inspect(value, { showProxy: true }));
	const words = (error) => {
		let text;
		const syntax = error instanceof SyntaxError &&
			/^REPL\d+:\d+\n([^]*?)\n+(SyntaxError: .*)/.exec(error.stack);
		if (syntax) return `${syntax[1].trim() ? `${syntax[1]}\n\n` : ''}Uncaught ${syntax[2]}`;
		try {
			text = inspect(error);
		} catch {
			text = '[an error that cannot be shown]';
		}
		return `Uncaught ${unwound(text)}`;
	};
	const brief = (error) => {
		try {
			return error instanceof Error ? `${error.name}: ${error.message}` : inspect(error);
		} catch {
			return '[an error that cannot be shown]';
		}
	};

	const finish = (mine, kind, payload) => {
		if (current !== mine) return;
		current = null;
		clearInterval(mine.timer);
		giveInputBack(mine);
		frame(kind, payload);
		next();
	};
	// What it has left to be told, such as a rejection that nobody handles, Node tells before the next turn of its
	// loop: that is still this evaluation's.
	const end = (mine, status) => {
		mine.ended = true;
		later(() => finish(mine, 'D', status));
	};
	const fail = (mine, error) => {
		if (mine.ended) return;
		const interrupted = error && error.code === INTERRUPTED;
		if (interrupted && !error.told) owed = false;
		repl.lastError = error;
		errWrite(interrupted ? 'Uncaught interrupt\n' : `${words(error)}\n`);
		frame('X', cut(interrupted ? 'interrupted' : brief(error)));
		end(mine, '1');
	};
	const succeed = (mine, value) => {
		if (mine.ended) return;
		if (value !== undefined) {
			let text;
			try {
				text = writer(value);
			} catch (error) {
				fail(mine, error);
				return;
			}
			repl.last = value;
			outWrite(`${text}\n`);
			frame('V', cut(text));
		}
		end(mine, '0');
	};

	// ---- input: only a closed descriptor's number can be given to another file -------------------
	const become = (file) => {
		try {
			fs.closeSync(0);
		} catch {
			// closed already
		}
		fs.openSync(file, 'r');
	};
	const giveInput = (mine, data) => {
		if (data.length === 0) return;
		const file = path.join(os.tmpdir(), `.sandbox-${process.pid}-${randomBytes(8).toString('hex')}`);
		fs.writeFileSync(file, data, { flag: 'wx', mode: 0o600 });
		become(file);
		fs.unlinkSync(file);
		mine.given = true;
		let stream;
		Object.defineProperty(process, 'stdin', {
			configurable: true, enumerable: true,
			get: () => (stream ??= fs.createReadStream(null, { fd: 0, autoClose: false })),
		});
	};
	const stdin = Object.getOwnPropertyDescriptor(process, 'stdin');
	const giveInputBack = (mine) => {
		if (!mine.given) return;
		become('/dev/null');
		Object.defineProperty(process, 'stdin', stdin);
	};

	// ---- evaluations ----------------------------------------------------------------------------
	let count = 0;
	// Node watches for SIGINT while code runs and puts the default back in the end, which kills: one more
	// watch, that never ends, keeps it from that.  What strikes outside of code is asked for.
	const forget = () => {
		if (!watch.watchdogHasPendingSigint()) return false;
		// the last one to stop would put the default back, for the next interrupt to kill by
		watch.startSigintWatchdog();
		watch.stopSigintWatchdog();
		return true;
	};
	watch.startSigintWatchdog();
	let struck = false;
	// No signal has ended the evaluation.  If there was an interrupt, its signal may be on its way through
	// Node's threads still, and is not the next evaluation's.
	let owed = false;
	let late = false;
	const forgetLate = () => {
		for (let i = 0; late && i < 1000 && !forget(); i++)
			Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
		late = false;
		forget();
	};
	repl.on('SIGINT', () => { struck = true; });
	repl.close = () => {};
	const await_ = (mine) => {
		if (struck) repl.emit('SIGINT'); // rejects what is awaited
		mine.timer = setInterval(() => { if (forget()) repl.emit('SIGINT'); }, 20);
	};
	const listenerCount = process.listenerCount.bind(process);
	const begin = (payload) => {
		const flags = parseInt(payload.toString('latin1', 0, 2), 16);
		const length = parseInt(payload.toString('latin1', 2, 10), 16);
		const mine = { given: false, threw: false, ended: false, result: undefined };
		const partial = flags & 1;
		const code = payload.toString('utf8', 10, 10 + length);
		current = mine;
		forgetLate();
		struck = false;
		owed = true;
		beginning = mine;
		giveInput(mine, payload.subarray(10 + length));
		// An interrupt at the very end of the script can end us in the middle, too.
		let returned = false;
		later(() => {
			if (returned) return;
			delete process.listenerCount;
			if (current === mine) fail(mine, { code: INTERRUPTED });
		});
		// A listener of the code's would be taken off, and the default put in its place, while it runs.
		process.listenerCount = (name, ...rest) => (name === 'SIGINT' ? 0 : listenerCount(name, ...rest));
		evaluate(`${code}\n`, repl.context, `REPL${++count}`, (error, value) => {
			if (current !== mine) return;
			if (error instanceof Recoverable && partial) finish(mine, 'U', '');
			// `throw undefined` and `throw null` are errors, too
			else if (error !== null || mine.threw) fail(mine, error instanceof Recoverable ? error.err : error);
			else succeed(mine, value);
		});
		delete process.listenerCount;
		returned = true;
		beginning = null;
		if (current !== mine) return;
		if (util.types.isPromise(mine.result))
			apply(then, mine.result, [undefined, () => { mine.threw = true; }]);
		await_(mine);
	};

	let want = 44;
	const next = () => {
		while (current === null && have >= want) {
			const all = pieces.length === 1 ? pieces[0] : concat(pieces);
			const length = parseInt(all.toString('latin1', 35, 43), 16);
			pieces = [all];
			want = 44 + length;
			if (have < want) return;
			const payload = all.subarray(44, want);
			nonce = all.toString('latin1', 2, 34);
			pieces = [all.subarray(want)];
			have -= want;
			want = 44;
			if (all[0] === 0x53) frame('H', `1 nul int js ${process.versions.node}`); // S
			else if (all[0] === 0x45) begin(payload); // E
			else if (all[0] === 0x49) late = owed; // I
		}
	};
	control.on('data', (data) => {
		pieces.push(data);
		have += data.length;
		next();
	});
	control.on('close', () => process.exit(0));
	control.on('error', () => process.exit(0));
	process.on('uncaughtException', (error) => {
		errWrite(`${words(error)}\n`); // of a timer, say: no evaluation's end
	});
}
