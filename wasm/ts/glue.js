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

	/* ---- What ts.transpileModule() does, without a program and a checker of each file's own: those take most
	 * of its time.  One checker, of a program with nothing in it, is made beforehand; a file is bound and then
	 * known to it as a module, so that its names are its own.  tests/wasm/suites holds the two against each other. */
	const plain = {
		...options(false), isolatedModules: true, noCheck: true, noLib: true, noResolve: true,
		suppressOutputPathCheck: true, allowNonTsExtensions: true, declaration: false, declarationMap: false,
	};
	const CHECKER_USES = 100; /* it keeps a little of every file */
	let resolver, host, uses = CHECKER_USES;

	function renewChecker() {
		const empty = ts.createSourceFile("/empty.ts", "export {};", { languageVersion: plain.target });
		const program = ts.createProgram(["/empty.ts"], plain, {
			getSourceFile: (name) => name === empty.fileName ? empty : undefined, writeFile() {},
			getDefaultLibFileName: () => "lib.d.ts", useCaseSensitiveFileNames: () => false,
			getCanonicalFileName: (name) => name, getCurrentDirectory: () => "", getNewLine: () => "\n",
			fileExists: (name) => name === empty.fileName, readFile: () => "", directoryExists: () => true, getDirectories: () => [],
		});
		resolver = ts.createTypeChecker(program).getEmitResolver(undefined, undefined, true);
		host = { ...program, getCanonicalFileName: (name) => name, useCaseSensitiveFileNames: () => false };
		uses = 0;
	}

	/* A script that was bound as a module is no module for that: without the empty export. */
	const isEmptyExport = (s) => ts.isExportDeclaration(s) && !s.moduleSpecifier && s.exportClause !== undefined &&
		ts.isNamedExports(s.exportClause) && s.exportClause.elements.length === 0;
	const asItWas = () => (file) => file.externalModuleIndicator !== true ? file : ts.factory.updateSourceFile(file,
		ts.setTextRange(ts.factory.createNodeArray(file.statements.filter((s) => !isEmptyExport(s))), file.statements));
	const transformers = ts.getTransformers(plain, { after: [asItWas] }, false).scriptTransformers;

	/* Names that other modules have: which of them are used as values. */
	function mark(file, text) {
		if (/\b(?:im|ex)port\b|\\u/.test(text)) ts.forEachChildRecursively(file, (node) => {
			if (ts.isImportDeclaration(node) ||
				ts.isImportEqualsDeclaration(node) && !(ts.getSyntacticModifierFlags(node) & ts.ModifierFlags.Export)) return "skip";
			resolver.markLinkedReferences(node);
		});
	}

	function transpile(path, text) {
		const file = ts.createSourceFile(path, text, { languageVersion: plain.target, jsDocParsingMode: ts.JSDocParsingMode.ParseAll,
			setExternalModuleIndicator: ts.getSetExternalModuleIndicator(plain) });
		if (file.parseDiagnostics.length) return { diagnostics: ts.sortAndDeduplicateDiagnostics(file.parseDiagnostics) };
		if (uses++ >= CHECKER_USES) renewChecker();
		file.path = file.resolvedPath = file.originalFileName = path;
		file.externalModuleIndicator ??= true;
		ts.bindSourceFile(file, plain);
		mark(file, text);
		const made = ts.transformNodes(resolver, host, ts.factory, plain, [file], transformers, false);
		const writer = ts.createTextWriter("\n"), printer = ts.createPrinter({
			newLine: plain.newLine, module: plain.module, target: plain.target,
		}, {
			hasGlobalName: resolver.hasGlobalName, onEmitNode: made.emitNodeWithNotification,
			isEmitNotificationEnabled: made.isEmitNotificationEnabled, substituteNode: made.substituteNode,
		});
		printer.writeFile(made.transformed[0], writer, undefined);
		writer.writeLine();
		made.dispose();
		return { outputText: writer.getText(), diagnostics: made.diagnostics ?? [] };
	}

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
		const { outputText, diagnostics } = transpile(path, text);
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

	return { translate, stack, transpile, options };
})()
