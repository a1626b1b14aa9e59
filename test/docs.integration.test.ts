import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import * as library from '../src/index.js';
import { encoderModel } from './products/streaming/streaming-encoder.js';
import { pages } from './support/pages.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const fresh = mkdtempSync(join(tmpdir(), 'trtforge-docs-'));
execFileSync(process.execPath, [join(root, 'scripts/generate-docs.mjs'), '--into', fresh]);
afterAll(() => rmSync(fresh, { recursive: true }));

const CONTRACT = join(root, 'test/fixtures/contracts/batch-first.contract.json');
const MODEL = await encoderModel();

const filesOf = (folder: string) => readdirSync(folder).sort();

/** A page without its code. */
const textOf = (path: string) => readFileSync(path, 'utf8').replaceAll(/^```.*?^```/gms, '');

/** Names of a page's headings in links, as GitHub makes them. */
const anchorsOf = (path: string) =>
  [...textOf(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );

describe('the documentation', () => {
  test.each(['errors', 'command-line', 'migrating', 'versions', 'library'])(
    'docs/%s.md is what `npm run docs` writes',
    (name) => {
      const path = `docs/${name}.md`;
      expect(readFileSync(join(root, path), 'utf8')).toBe(readFileSync(join(fresh, path), 'utf8'));
    },
  );

  test('has every function of the library, in a type that an editor shows whole', () => {
    const page = readFileSync(join(root, 'docs/library.md'), 'utf8');
    const functions = Object.entries(library).filter(
      ([name, value]) => typeof value === 'function' && name !== 'TrtforgeError',
    );
    for (const [name] of functions) {
      const [, section = ''] = new RegExp(`^### ${name}\n(.*?)(?=^##)`, 'ms').exec(page) ?? [];
      expect(section, name).toMatch(/^```ts\n/m);
      expect(/^`(?:<T>)?\(.*`$/m.exec(section)?.[0].length, name).toBeLessThanOrEqual(400);
    }
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

  test.each([
    ['toolchain-list', ['toolchain', 'list']],
    ['explain', ['explain', join(root, 'test/fixtures/trtexec-logs/8.6-err_unknown_flag.log')]],
    ['plan', ['cache', 'clear', '--dry-run']],
    ['error', ['inspect', join(root, 'none.onnx')]],
    ['error', ['nothing']],
    ['config', ['inspect', MODEL, '--print-config']],
    ['version', ['--version']],
    ['stream-check', ['stream', 'check', MODEL, '--contract', CONTRACT]],
  ])('has a JSON Schema that takes what a command prints with --json: %s', (name, words) => {
    const main = join(root, 'dist/main.js');
    const { stdout } = spawnSync(process.execPath, [main, ...words, '--json'], { encoding: 'utf8' });
    const schema = JSON.parse(readFileSync(join(root, 'schemas', `${name}.json`), 'utf8'));
    const answer = JSON.parse(stdout);
    expect(answer.schema).toBe(`trtforge.${name}/1`);
    expect(z.fromJSONSchema(schema).safeParse(answer).error?.issues).toBeUndefined();
  });

  test('links only to pages and headings that exist', () => {
    const missing = pages.flatMap((page) =>
      [...textOf(join(root, page)).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)]
        .filter(([, path = '', heading]) => {
          const target = path === '' ? join(root, page) : join(root, page, '..', path);
          if (!existsSync(target)) return true;
          return heading !== undefined && !anchorsOf(target).includes(heading);
        })
        .map(([link]) => `${page}: ${link}`),
    );
    expect(missing).toEqual([]);
  });
});
