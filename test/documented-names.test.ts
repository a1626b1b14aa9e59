import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { pages } from './support/pages.js';

const root = fileURLToPath(new URL('..', import.meta.url));

const files = ['src', 'native', 'schemas', 'scripts', 'bench', 'test', 'examples'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
);
const code = files.filter((path) => /\.(ts|mts|mjs|cpp|hpp|json)$/.test(path) && !path.includes('fixtures'));
const words = new Set(code.flatMap((path) => readFileSync(join(root, path), 'utf8').match(/\w+/g) ?? []));
const isPath = (name: string) =>
  existsSync(join(root, name)) ||
  files.some((path) => path === name || path === join('src', name) || path.endsWith(`/${name}`));

/** What pages of rules for names call a file that each reader names. */
const PATTERNS = /^(x|NAME|name)\.(integration\.|full\.)?test\.ts$/;

/** Whether a name in backticks is there: functions and fields in the code, files and folders in the clone. Other spans are not asked. */
function isThere(span: string): boolean {
  if (/^[a-z]+[A-Z]\w*(\(\))?$/.test(span)) return words.has(span.replace('()', ''));
  if (/^[\w./-]+\.(ts|mjs|cpp|hpp)$/.test(span)) return PATTERNS.test(basename(span)) || isPath(span);
  const isFolder = /^(base|formats|tensorrt|engines|quality|report|forge|cli|products|native|src)\/[\w/-]*$/;
  return !isFolder.test(span) || [root, join(root, 'src')].some((folder) => existsSync(join(folder, span)));
}

describe('names in backticks', () => {
  test.each(pages)('%s names what is there', (page) => {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```.*?^```/gms, '');
    const spans = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span!);
    expect(spans.filter((span) => !isThere(span))).toEqual([]);
  });

  test('a name that is not there is found', () => {
    const missing = ['assertFormat', 'Builds'].join('');
    expect([isThere(missing), isThere(`engines/${missing}.ts`), isThere('quality/nowhere/')]).toEqual([
      false,
      false,
      false,
    ]);
    expect([isThere('buildOrLoad'), isThere('cli/resolve.ts'), isThere('products/study/')]).toEqual([
      true,
      true,
      true,
    ]);
  });
});
