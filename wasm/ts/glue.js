/* SPDX-License-Identifier: MIT */
/* glue.js - what ts.c asks of the compiler; the value of this script has its functions. */
(() => {
	"use strict";
	const ts = globalThis.ts, sources = new Map();
	/* each name of `ts` is a function call */
	const { createSourceFile, forEachChild, isIdentifier, isStringLiteral, isNumericLiteral, skipTrivia } = ts;
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

	const how = { languageVersion: plain.target, jsDocParsingMode: ts.JSDocParsingMode.ParseAll,
		setExternalModuleIndicator: ts.getSetExternalModuleIndicator(plain) };
	const parse = (path, text) => createSourceFile(path, text, how);

	function transpile(path, text, file = parse(path, text)) {
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

	/* ---- A program that is JavaScript but for its types: these become blanks, and each line and column stays where it
	 * is.  That takes a fourth of the time.  What stands here is known to be right so; at anything else the
	 * answer is null, and the whole compiler does it.  tests/wasm/suites compares the trees of both results. */
	const K = ts.SyntaxKind, USING = ts.NodeFlags.Using;
	const asItStands = new Uint8Array(500); /* by kind: its children are looked at, and nothing else */
	for (const kind of [K.Identifier, K.PrivateIdentifier, K.NumericLiteral, K.BigIntLiteral, K.StringLiteral, K.RegularExpressionLiteral,
		K.NoSubstitutionTemplateLiteral, K.TemplateHead, K.TemplateMiddle, K.TemplateTail, K.TemplateExpression, K.TemplateSpan,
		K.NullKeyword, K.TrueKeyword, K.FalseKeyword, K.ThisKeyword, K.SuperKeyword, K.ObjectBindingPattern, K.ArrayBindingPattern,
		K.BindingElement, K.OmittedExpression, K.ComputedPropertyName, K.ArrayLiteralExpression, K.ObjectLiteralExpression,
		K.PropertyAssignment, K.ShorthandPropertyAssignment, K.SpreadAssignment, K.SpreadElement, K.PropertyAccessExpression,
		K.ElementAccessExpression, K.ParenthesizedExpression, K.DeleteExpression, K.TypeOfExpression, K.VoidExpression, K.AwaitExpression,
		K.PrefixUnaryExpression, K.PostfixUnaryExpression, K.YieldExpression, K.MetaProperty, K.ImportKeyword,
		K.QuestionDotToken, K.DotDotDotToken, K.AsteriskToken, K.EqualsToken, K.Block, K.EmptyStatement, K.VariableStatement, K.ExpressionStatement, K.IfStatement, K.DoStatement, K.WhileStatement,
		K.ForStatement, K.ForInStatement, K.ForOfStatement, K.AwaitKeyword, K.ContinueStatement, K.BreakStatement, K.ReturnStatement,
		K.SwitchStatement, K.CaseBlock, K.CaseClause, K.DefaultClause, K.LabeledStatement, K.ThrowStatement, K.TryStatement,
		K.CatchClause, K.DebuggerStatement, K.SemicolonClassElement, K.ClassStaticBlockDeclaration]) asItStands[kind] = 1;
	const tighter = (kind) => kind === K.PlusToken || kind === K.MinusToken || kind === K.AsteriskToken || kind === K.SlashToken ||
		kind === K.PercentToken || kind === K.AsteriskAsteriskToken || kind === K.LessThanLessThanToken ||
		kind === K.GreaterThanGreaterThanToken || kind === K.GreaterThanGreaterThanGreaterThanToken;
	const NOT_PLAIN = {}; /* thrown */

	function erase(text, file) {
		if (file.externalModuleIndicator !== undefined) return null; /* what of it is used decides what stays */
		const edits = []; /* from, to, what stands there instead of blanks; in order of `from` */
		const no = () => { throw NOT_PLAIN; };
		const blank = (from, to, instead = "") => { edits.push([from, to, instead]); };
		const oneLine = (from, to) => { if (/[\n\r\u2028\u2029]/.test(text.slice(from, to))) no(); };
		const start = (node) => skipTrivia(text, node.pos);

		/* a list between < and > */
		function angles(list) {
			if (list === undefined) return;
			const end = skipTrivia(text, list.end);
			if (text[list.pos - 1] !== "<" || text[end] !== ">") no();
			blank(list.pos - 1, end + 1);
			return end + 1;
		}

		function annotation(type) {
			if (type === undefined) return;
			if (text[type.pos - 1] !== ":") no();
			blank(type.pos - 1, type.end);
		}

		const mark = (token) => { if (token !== undefined) blank(token.end - 1, token.end); };

		/* Behind what goes a new line may go on with what was another statement. */
		function endsThere(node) {
			const next = skipTrivia(text, node.end);
			if (/[\n\r\u2028\u2029]/.test(text.slice(node.end, next)) && "([`+-/*<".includes(text[next] ?? " ")) no();
		}

		function parameter(p) {
			if (p.modifiers !== undefined || isIdentifier(p.name) && p.name.escapedText === "this") no();
			visit(p.name);
			mark(p.questionToken);
			annotation(p.type);
			if (p.initializer !== undefined) visit(p.initializer);
		}

		function signature(node) {
			const arrow = node.kind === K.ArrowFunction;
			if (node.typeParameters !== undefined) {
				const end = angles(node.typeParameters);
				if (arrow) oneLine(node.typeParameters.pos, skipTrivia(text, end));
			}
			node.parameters.forEach(parameter);
			if (node.type !== undefined) {
				annotation(node.type);
				if (arrow) oneLine(node.type.pos, skipTrivia(text, node.type.end));
			}
			if (node.body !== undefined) visit(node.body);
		}

		/* async, static and the like stay. */
		function modifiers(node, member) {
			for (const m of node.modifiers ?? []) switch (m.kind) {
			case K.AsyncKeyword: case K.StaticKeyword:
				break;
			case K.PublicKeyword: case K.PrivateKeyword: case K.ProtectedKeyword: case K.ReadonlyKeyword: case K.OverrideKeyword:
				if (!member || node.asteriskToken !== undefined || node.name?.kind === K.ComputedPropertyName) no();
				blank(start(m), m.end);
				break;
			case K.AbstractKeyword:
				if (member) no();
				blank(start(m), m.end);
				break;
			default: /* export, declare, accessor, const, decorators */
				no();
			}
		}

		function member(m) {
			switch (m.kind) {
			case K.PropertyDeclaration:
				if (isIdentifier(m.name) && ["get", "set", "static", "async", "accessor", "declare"].includes(m.name.text)) no();
				modifiers(m, true);
				visit(m.name);
				mark(m.questionToken ?? m.exclamationToken);
				annotation(m.type);
				if (m.initializer !== undefined) visit(m.initializer);
				break;
			case K.MethodDeclaration: case K.Constructor: case K.GetAccessor: case K.SetAccessor:
				if (m.body === undefined) no();
				modifiers(m, true);
				if (m.name !== undefined) visit(m.name);
				mark(m.questionToken);
				signature(m);
				break;
			default:
				visit(m);
			}
		}

		function klass(node) {
			modifiers(node, false);
			angles(node.typeParameters);
			for (const clause of node.heritageClauses ?? []) {
				if (clause.token === K.ImplementsKeyword) {
					blank(start(clause), clause.end);
					continue;
				}
				for (const base of clause.types) {
					visit(base.expression);
					angles(base.typeArguments);
				}
			}
			node.members.forEach(member);
		}

		/* Each name a number or a text that is written there; alone on its lines, or columns would move. */
		function enumeration(node) {
			const name = node.name.text, lines = [];
			if (node.modifiers !== undefined || !/^[^\S\n\r]*(?:[\n\r]|$)/.test(text.slice(node.end))) no();
			let value = 0;
			for (const m of node.members) {
				if (!isIdentifier(m.name)) no();
				const key = JSON.stringify(m.name.text), of = m.initializer;
				if (of === undefined && value === undefined) no();
				if (of !== undefined && isStringLiteral(of)) {
					lines.push(`${name}[${key}] = ${JSON.stringify(of.text)};`);
					value = undefined;
					continue;
				}
				if (of !== undefined) {
					if (!isNumericLiteral(of) || !/^(?:0|[1-9]\d{0,8})$/.test(of.getText(file))) no();
					value = Number(of.text);
				}
				lines.push(`${name}[${name}[${key}] = ${value++}] = ${key};`);
			}
			if (/[^\x20-\x7e]/.test(lines.join(""))) no();
			blank(start(node), node.end, `var ${name}; (function (${name}) { ${lines.join(" ")} })(${name} || (${name} = {}));`);
		}

		function visit(node) {
			const kind = node.kind;
			if (asItStands[kind]) {
				if (node.modifiers !== undefined) no(); /* export, declare */
				forEachChild(node, visit);
				return;
			}
			switch (kind) {
			case K.BinaryExpression:
				if (tighter(node.operatorToken.kind) && (node.left.kind === K.AsExpression || node.left.kind === K.SatisfiesExpression)) no();
				visit(node.left);
				visit(node.right);
				break;
			case K.ConditionalExpression:
				visit(node.condition);
				visit(node.whenTrue);
				visit(node.whenFalse);
				break;
			case K.VariableDeclarationList:
				if (node.flags & USING) no();
				node.declarations.forEach(visit);
				break;
			case K.VariableDeclaration:
				visit(node.name);
				mark(node.exclamationToken);
				annotation(node.type);
				if (node.initializer !== undefined) visit(node.initializer);
				break;
			case K.AsExpression: case K.SatisfiesExpression:
				visit(node.expression);
				endsThere(node);
				blank(node.expression.end, node.type.end);
				break;
			case K.NonNullExpression:
				visit(node.expression);
				blank(node.end - 1, node.end);
				break;
			case K.CallExpression: case K.NewExpression:
				visit(node.expression);
				angles(node.typeArguments);
				node.arguments?.forEach(visit);
				break;
			case K.TaggedTemplateExpression:
				visit(node.tag);
				angles(node.typeArguments);
				visit(node.template);
				break;
			case K.InterfaceDeclaration: case K.TypeAliasDeclaration:
				if (node.modifiers !== undefined) no();
				blank(start(node), node.end, ";");
				break;
			case K.FunctionDeclaration:
				if (node.body === undefined) no();
				modifiers(node, false);
				signature(node);
				break;
			case K.FunctionExpression: case K.ArrowFunction:
				modifiers(node, false);
				signature(node);
				break;
			case K.MethodDeclaration: case K.GetAccessor: case K.SetAccessor: /* of an object */
				if (node.questionToken !== undefined || node.exclamationToken !== undefined || node.body === undefined) no();
				modifiers(node, false);
				visit(node.name);
				signature(node);
				break;
			case K.ClassDeclaration: case K.ClassExpression:
				klass(node);
				break;
			default:
				no();
			}
		}

		try {
			for (const s of file.statements) if (s.kind === K.EnumDeclaration) enumeration(s); else visit(s);
		} catch (e) {
			if (e === NOT_PLAIN) return null;
			throw e;
		}
		let made = "", at = 0;
		for (const [from, to, instead] of edits) {
			if (from < at) return null;
			const gone = text.slice(from, to), line = gone.search(/[\n\r\u2028\u2029]/);
			made += text.slice(at, from) + instead;
			if (line < 0) made += " ".repeat(Math.max(0, gone.length - instead.length));
			else made += gone.slice(Math.min(instead.length, line)).replace(/[^\n\r\u2028\u2029]/g, " ");
			at = to;
		}
		return made + text.slice(at);
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
		const file = parse(path, text), erased = file.parseDiagnostics.length ? null : erase(text, file);
		if (erased !== null) {
			sources.delete(path); /* its lines are the source's */
			return [erased];
		}
		const { outputText, diagnostics } = transpile(path, text, file);
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

	return { translate, stack, transpile, options, parse, erase };
})()
