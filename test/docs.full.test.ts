import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { pages } from './support/pages.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'trtforge-pages-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What the pages take for granted. */
const GIVEN = `
declare const pixels: Float32Array;
declare const chunks: readonly Float32Array[];
declare function use(result: unknown): void;
`;

/** As strict as a user may be; `skipLibCheck: false` reads our declarations too. */
const USERS_COMPILER = {
  target: 'es2023',
  lib: ['es2023', 'esnext.disposable'],
  module: 'nodenext',
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
  types: ['node'],
};

test('the documentation has TypeScript that the package declares, and declarations without a fault', () => {
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(root, join(folder, 'node_modules/trtforge'), 'dir');
  symlinkSync(join(root, 'node_modules/@types'), join(folder, 'node_modules/@types'), 'dir');
  for (const page of pages) {
    const blocks = [...readFileSync(join(root, page), 'utf8').matchAll(/^```ts\n(.*?)^```/gms)];
    const code = blocks.map((block) => block[1] ?? '').join('');
    if (code.includes("from 'trtforge"))
      writeFileSync(join(folder, `${basename(page, '.md')}.ts`), `${GIVEN}${code}`);
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: USERS_COMPILER }));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' });
  expect(readdirSync(folder)).toContain('running.ts');
  expect(stdout).toBe('');
});
