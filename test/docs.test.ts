import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const fresh = mkdtempSync(join(tmpdir(), 'trtforge-docs-'));
execFileSync(process.execPath, [join(root, 'scripts/generate-docs.mjs'), '--into', fresh]);
afterAll(() => rmSync(fresh, { recursive: true }));

const filesOf = (folder: string) => readdirSync(folder).sort();

describe('the documentation', () => {
  test.each(['docs/errors.md', 'docs/command-line.md'])('%s is what `npm run docs` writes', (path) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(readFileSync(join(fresh, path), 'utf8'));
  });

  test('has a JSON Schema for each result, as `npm run docs` writes it', () => {
    const names = filesOf(join(fresh, 'schemas'));
    expect(filesOf(join(root, 'schemas'))).toEqual(names);
    for (const name of names) {
      expect(readFileSync(join(root, 'schemas', name), 'utf8')).toBe(
        readFileSync(join(fresh, 'schemas', name), 'utf8'),
      );
    }
  });

  test('links only to pages that exist', () => {
    const pages = [
      'README.md',
      'CONTRIBUTING.md',
      ...filesOf(join(root, 'docs'))
        .filter((name) => name.endsWith('.md'))
        .map((name) => `docs/${name}`),
    ];
    const missing = pages.flatMap((page) => {
      const folder = join(root, page, '..');
      const links = [...readFileSync(join(root, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(
        (match) => match[1] ?? '',
      );
      return links.filter((link) => !existsSync(join(folder, link))).map((link) => `${page}: ${link}`);
    });
    expect(missing).toEqual([]);
  });
});
