import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pages } from './support/pages.js';

const read = (path: string) => JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));

interface Locked {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

test('the platform package is of the version that the package asks for', () => {
  const { version, optionalDependencies } = read('package.json');
  const platform = read('npm/linux-x64/package.json');
  expect(platform.version).toBe(version);
  expect(optionalDependencies[platform.name]).toBe(version);
});

test('the lock file has the packages of every platform: without one of them npm ci fails everywhere', () => {
  const { packages } = read('package-lock.json') as { readonly packages: Readonly<Record<string, Locked>> };
  const locked = new Set(Object.keys(packages).map((path) => path.replace(/^.*node_modules\//, '')));
  const optional = Object.values(packages).flatMap((each) => Object.keys(each.optionalDependencies ?? {}));
  expect(optional.filter((name) => !locked.has(name))).toEqual([]);
});

test('what its pages link of docs/ is in the package', () => {
  const { files } = read('package.json') as { readonly files: readonly string[] };
  const packed = files.map(
    (pattern) => new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}(?:$|/)`),
  );
  const linked = pages.flatMap((page) =>
    [
      ...readFileSync(new URL(`../${page}`, import.meta.url), 'utf8').matchAll(/\]\((?!https?:)([^)#]+)/g),
    ].map(([, path = '']) => join(page, '..', path)),
  );
  const inDocs = linked.filter((path) => path.startsWith('docs/'));
  expect(inDocs.length).toBeGreaterThan(50);
  expect(inDocs.filter((path) => !packed.some((pattern) => pattern.test(path)))).toEqual([]);
});

test('the program of the package stays executable after each compilation', () => {
  expect(statSync(new URL('../dist/trtforge.cjs', import.meta.url)).mode & 0o111).toBe(0o111);
});
