/* SPDX-License-Identifier: MIT */
/* glue.js - what ts.c asks of the compiler; the value of this script has its functions. */
(() => {
	"use strict";
	const ts = globalThis.ts, sources = new Map();
	const options = (map) => ({
		target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, sourceMap: map,
		useDefineForClassFields: true, newLine: ts.NewLineKind.LineFeed, jsx: ts.JsxEmit.React,
		allowJs: false, inlineSources: false,
	});

	function message(path, text, d) {
		const at = d.file && d.start !== undefined ? ts.getLineAndCharacterOfPosition(d.file, d.start) : null;
		const words = ts.flattenDiagnosticMessageText(d.messageText, "\n");
		if (at === null) return `${path} - error TS${d.code}: ${words}`;
		const line = text.split(/\r\n|\n|\r/)[at.line] ?? "";
		const shown = line.length > 160 ? "" : `\n\n${line}\n${line.slice(0, at.character).replace(/[^\t]/g, " ")}` +
			"~".repeat(Math.max(1, Math.min(d.length ?? 1, line.length - at.character)));
		return `${path}:${at.line + 1}:${at.character + 1} - error TS${d.code}: ${words}${shown}`;
	}

	/* More text would help: the error stands behind all that there is, or what it is in has no end. */
	const OPEN = [1010, 1160]; /* of a comment, of a template */
	const unfinished = (text, d) => d.start >= text.trimEnd().length || OPEN.includes(d.code);

	/* `keep`: for stack().  null: unfinished, if `partial`. */
	function translate(path, text, keep, partial) {
		const { outputText, diagnostics } = ts.transpileModule(text, { fileName: path, reportDiagnostics: true, compilerOptions: options(false) });
		const errors = diagnostics.filter((d) => d.category === ts.DiagnosticCategory.Error);
		if (errors.length === 0) {
			if (keep) sources.set(path, text);
			return [outputText];
		}
		if (partial && errors.some((d) => unfinished(text, d))) return null;
		const shown = errors.slice(0, 10).map((d) => message(path, text, d));
		if (errors.length > 10) shown.push(`and ${errors.length - 10} more errors`);
		return shown.join("\n");
	}

	/* Of "mappings": for each line of the output a list of [column, source line, source column]. */
	function decode(mappings) {
		const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", lines = [[]];
		let column = 0, line = 0, from = 0, fields = [], value = 0, shift = 0;
		const end = () => {
			if (fields.length) {
				column += fields[0];
				if (fields.length >= 4) lines.at(-1).push([column, line += fields[2], from += fields[3]]);
			}
			fields = [];
		};
		for (const c of mappings) {
			if (c === "," || c === ";") {
				end();
				if (c === ";") { lines.push([]); column = 0; }
				continue;
			}
			const n = digits.indexOf(c);
			value |= (n & 31) << shift;
			shift += 5;
			if (n & 32) continue;
			fields.push(value & 1 ? -(value >> 1) : value >> 1);
			value = shift = 0;
		}
		end();
		return lines;
	}

	function stack(text) {
		const maps = new Map();
		return text.replace(/(\/[^\s():]+):(\d+):(\d+)/g, (all, path, line, column) => {
			if (!sources.has(path)) return all;
			if (!maps.has(path)) {
				const { sourceMapText } = ts.transpileModule(sources.get(path), { fileName: path, compilerOptions: options(true) });
				maps.set(path, decode(JSON.parse(sourceMapText).mappings));
			}
			const of = (maps.get(path)[line - 1] ?? []).findLast(([c]) => c <= column - 1) ?? maps.get(path)[line - 1]?.[0];
			return of === undefined ? all : `${path}:${of[1] + 1}:${of[2] + 1}`;
		});
	}

	return { translate, stack };
})()
