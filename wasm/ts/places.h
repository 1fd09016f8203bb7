/* SPDX-License-Identifier: MIT */
/* places.h - what compile.c puts into the compiler's source: { what stands there, what comes instead }. */

/* ---- The scanner: by its first character most of a program is a name, a blank or a sign of one character ---------- */
{ "\nfunction createScanner(",
  "\nvar quickTokens = new Uint8Array(128), wordParts = new Uint8Array(128);\n"
  "for (const c of \"$_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz\") quickTokens[c.charCodeAt(0)] = 80, wordParts[c.charCodeAt(0)] = 1;\n"
  "for (const c of \"0123456789\") wordParts[c.charCodeAt(0)] = 1;\n"
  "for (const c of \"\\t\\v\\f \") quickTokens[c.charCodeAt(0)] = 5;\n"
  "for (const [c, token] of [[\"(\", 21], [\")\", 22], [\",\", 28], [\":\", 59], [\";\", 27], [\"[\", 23], [\"]\", 24], [\"{\", 19], [\"}\", 20], "
  "[\"~\", 55], [\"@\", 60]]) quickTokens[c.charCodeAt(0)] = token;\n"
  "function createScanner(" },
{ "      switch (ch) {\n        case 10 /* lineFeed */:\n        case 13 /* carriageReturn */:\n"
  "          tokenFlags |= 1 /* PrecedingLineBreak */;\n          if (skipTrivia2) {\n",
  "      var quick = quickTokens[ch];\n"
  "      if (quick > 0) {\n"
  "        if (quick === 80) {\n"
  "          var c = 0;\n"
  "          for (pos++; pos < end && wordParts[c = text.charCodeAt(pos)] === 1; pos++);\n"
  "          if (pos < end && (c > 127 || c === 92)) { pos = tokenStart; return token = scanIdentifier(ch, languageVersion); }\n"
  "          tokenValue = text.substring(tokenStart, pos);\n"
  "          return token = getIdentifierToken();\n"
  "        }\n"
  "        if (quick !== 5) { pos++; return token = quick; }\n"
  "        if (skipTrivia2) { pos++; continue; }\n"
  "      }\n"
  "      switch (ch) {\n        case 10 /* lineFeed */:\n        case 13 /* carriageReturn */:\n"
  "          tokenFlags |= 1 /* PrecedingLineBreak */;\n          if (skipTrivia2) {\n" },

/* ---- The parser --------------------------------------------------------------------------------------------------- */
{ "function getBinaryOperatorPrecedence(kind) {\n",
  "function getBinaryOperatorPrecedence(kind) {\n"
  "  if (kind < 30 || kind > 61 && kind !== 104 && kind !== 103 && kind !== 130 && kind !== 152) return -1;\n" },
{ "    if (isKeyword(currentToken) && (scanner2.hasUnicodeEscape() || scanner2.hasExtendedUnicodeEscape())) {\n      parseErrorAt(scanner2.getTokenStart(),",
  "    if (currentToken >= 83 && currentToken <= 166 && (scanner2.hasUnicodeEscape() || scanner2.hasExtendedUnicodeEscape())) {\n      parseErrorAt(scanner2.getTokenStart()," },
{ "    setTextRangePosEnd(node, pos, end ?? scanner2.getTokenFullStart());\n    if (contextFlags) {\n",
  "    node.pos = pos;\n    node.end = end ?? scanner2.getTokenFullStart();\n    if (contextFlags) {\n" },
{ "    setTextRangePosEnd(array, pos, end ?? scanner2.getTokenFullStart());\n    return array;\n",
  "    array.pos = pos;\n    array.end = end ?? scanner2.getTokenFullStart();\n    return array;\n" },
{ "function getTransformFlagsSubtreeExclusions(kind) {\n",
  "var subtreeExclusions = [];\n"
  "function getTransformFlagsSubtreeExclusions(kind) {\n  return subtreeExclusions[kind] ??= findTransformFlagsSubtreeExclusions(kind);\n}\n"
  "function findTransformFlagsSubtreeExclusions(kind) {\n" },
{ "function isLeftHandSideExpressionKind(kind) {\n",
  "var leftHandSideKinds = [];\n"
  "function isLeftHandSideExpressionKind(kind) {\n  return leftHandSideKinds[kind] ??= findLeftHandSideExpressionKind(kind);\n}\n"
  "function findLeftHandSideExpressionKind(kind) {\n" },
