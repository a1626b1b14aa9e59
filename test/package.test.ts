import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

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
