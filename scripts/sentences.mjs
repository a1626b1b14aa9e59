// Lists every sentence that a user can see, by file and line, for review: messages, help, reports.
//   npm run sentences [-- PATTERN]    PATTERN: a regular expression that a sentence must match
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';

const root = fileURLToPath(new URL('..', import.meta.url));
const pattern = new RegExp(process.argv[2] ?? '', 'i');
const THREE_WORDS = /[a-z]+[,;:]? [a-z]+[,;:]? [a-z]+/i;
const LONGEST_LINE = 400;

const isMarkup = (text) => !THREE_WORDS.test(text.replaceAll(/<[^<>]*>/g, ' '));
const isStyle = (text) => /^--[\w-]+: |\{[^{}]*\b[\w-]+: [^{}]*;/.test(text);
/** Names, spellings: as long as a page, without the end of a sentence. */
const isTable = (text) => text.length > LONGEST_LINE && !/[a-z)`"][.:] /.test(text);

function list(path, line, text) {
  const sentence = text.replaceAll(/\s+/g, ' ').trim();
  if (!THREE_WORDS.test(sentence) || !pattern.test(sentence)) return;
  if (isMarkup(sentence) || isStyle(sentence) || isTable(sentence)) return;
  const printed = `${path}:${line}  ${sentence}`;
  console.log(printed.length > LONGEST_LINE ? `${printed.slice(0, LONGEST_LINE - 1)}…` : printed);
}

function* filesOf(folder, ending) {
  for (const name of readdirSync(join(root, folder), { recursive: true }).sort()) {
    const path = join(folder, name);
    if (ending.test(name)) yield { path, source: readFileSync(join(root, path), 'utf8') };
  }
}

const lineAt = (source, at) => source.slice(0, at).split('\n').length;

for (const { path, source } of filesOf('src', /\.ts$/)) {
  const found = (text, { start }) => list(path, lineAt(source, start), text);
  new Visitor({
    Literal: (node) => typeof node.value === 'string' && found(node.value, node),
    TemplateLiteral: (node) => found(node.quasis.map(({ value }) => value.cooked).join('…'), node),
  }).visit(parseSync(path, source).program);
}

/** A comment, a string or the end of a statement; a character in quotes may be a quote. */
const CPP_TOKEN = /\/\/.*|'(?:\\.|[^'\\])'|"((?:\\.|[^"\\\n])*)"|[;{}]/g;

for (const { path, source } of filesOf('native/src', /\.[ch]pp$/)) {
  let parts = [];
  for (const token of source.matchAll(CPP_TOKEN)) {
    const [whole, text] = token;
    if (text !== undefined && !/^TF_|\.hpp$/.test(text)) parts.push({ text, at: token.index });
    if (!/^[;{}]$/.test(whole)) continue;
    if (parts.length > 0) list(path, lineAt(source, parts[0].at), parts.map(({ text }) => text).join('…'));
    parts = [];
  }
}
