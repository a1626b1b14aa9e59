import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { pages } from './support/pages.js';

const read = (path: string) => JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));

interface Locked {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

test('the platform packages are of the version that the package asks for', () => {
  const { version, optionalDependencies } = read('package.json');
  for (const cpu of ['x64', 'arm64']) {
    const platform = read(`npm/linux-${cpu}/package.json`);
    expect(platform).toMatchObject({ name: `@trtforge/linux-${cpu}`, version, cpu: [cpu] });
    expect(optionalDependencies[platform.name]).toBe(version);
  }
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

test('the command is linked before and after the first build, and states how to build', () => {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const clone = mkdtempSync(join(tmpdir(), 'trtforge-clone-'));
  cpSync(join(root, 'bin'), join(clone, 'bin'), { recursive: true });
  const { name, version, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(clone, 'package.json'), JSON.stringify({ name, version, bin }));
  const environment = { ...process.env, npm_config_prefix: join(clone, 'prefix') };
  execFileSync('npm', ['link', '--offline'], { cwd: clone, env: environment, stdio: 'ignore' });
  const linked = () =>
    spawnSync(join(clone, 'prefix', 'bin', 'trtforge'), ['--version'], { encoding: 'utf8' });
  expect(linked()).toMatchObject({
    status: 3,
    stderr: expect.stringContaining(`cd ${clone} && npm install`),
  });
  symlinkSync(join(root, 'dist'), join(clone, 'dist'));
  expect(linked()).toMatchObject({ status: 0, stdout: expect.stringContaining(version) });
  rmSync(clone, { recursive: true });
});
