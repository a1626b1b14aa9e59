// Lists every sentence that a user can see, by file and line, for review: messages, help, reports.
//   npm run sentences [-- PATTERN]    PATTERN: a regular expression that a sentence must match
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';

const root = fileURLToPath(new URL('..', import.meta.url));
const pattern = new RegExp(process.argv[2] ?? '', 'i');
const THREE_WORDS = /[a-z]+[,;:]? [a-z]+[,;:]? [a-z]+/i;

for (const name of readdirSync(join(root, 'src'), { recursive: true }).sort()) {
  if (!name.endsWith('.ts')) continue;
  const path = join('src', name);
  const source = readFileSync(join(root, path), 'utf8');
  const list = (text, { start }) => {
    const sentence = text.replaceAll(/\s+/g, ' ').trim();
    if (!THREE_WORDS.test(sentence) || !pattern.test(sentence)) return;
    console.log(`${path}:${source.slice(0, start).split('\n').length}  ${sentence}`);
  };
  new Visitor({
    Literal: (node) => typeof node.value === 'string' && list(node.value, node),
    TemplateLiteral: (node) => list(node.quasis.map(({ value }) => value.cooked).join('…'), node),
  }).visit(parseSync(path, source).program);
}
