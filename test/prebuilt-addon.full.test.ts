import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openFile } from '../src/base/files/byte-source.js';
import { type ElfFacts, readElf } from '../src/tensorrt/toolchain/elf.js';
import { packNative } from './fakes/tensorrt/library.js';
import { staticModel } from './native/tiny-models.js';
import { describeWith, found } from './support/needs.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'trtforge-prebuilt-'));
const [packages, project, tools] = ['packages', 'project', 'tools'].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];

/** A machine without a compiler: what npm and a shell script need is all there is. */
const environment = { ...process.env, PATH: tools, TENSORRT_CACHE_DIR: join(folder, 'store') };
const run = (command: string, ...args: readonly string[]): string =>
  execFileSync(join(tools, command), args, {
    cwd: project,
    env: environment,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });

beforeAll(async () => {
  await packNative(packages);
  for (const path of [project, tools]) mkdirSync(path);
  for (const name of ['node', 'npm', 'npx', 'sh', 'env']) {
    const found = [dirname(process.execPath), ...(process.env.PATH ?? '').split(delimiter)].find((path) =>
      readdirSafely(path).includes(name),
    );
    if (found !== undefined) symlinkSync(join(found, name), join(tools, name));
  }
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  const tarballs = readdirSync(packages)
    .filter((name) => name.endsWith('.tgz'))
    .map((name) => join(packages, name));
  // What the registry's packages are needs no network where npm has them already.
  run('npm', 'install', '--no-audit', '--no-fund', '--prefer-offline', ...tarballs);
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function readdirSafely(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

describeWith('arm64-compiler', 'the prebuilt addon for the other processor', () => {
  test('is packed into a folder of its own: npm installs none for another machine', () => {
    expect(readdirSync(join(packages, 'linux-arm64'))).toEqual([
      expect.stringMatching(/^trtforge-linux-arm64-[\d.]+\.tgz$/),
    ]);
  });
});

describe.skipIf(process.platform !== 'linux')('the prebuilt addon', () => {
  const own = `node_modules/@trtforge/linux-${process.arch}`;
  const made = [
    ['this processor', () => join(project, own, 'trtforge.node')],
    ...(found('arm64-compiler') === undefined
      ? []
      : [['Arm', () => join(root, 'npm/linux-arm64/trtforge.node')] as const]),
  ] as const;
  const factsOf = (path: string): ElfFacts => {
    const file = openFile(path);
    try {
      return readElf(file);
    } finally {
      file.close();
    }
  };

  test.each(made)('for %s links glibc and the unwinder alone, and no symbol newer than 2.17', (_, path) => {
    const { needed, versions } = factsOf(path());
    expect(needed.filter((name) => !/^(libc|libgcc_s|ld-linux-(x86-64|aarch64))\.so/.test(name))).toEqual([]);
    const minors = [...versions.values()]
      .flat()
      .map((version) => /^GLIBC_2\.(\d+)/.exec(version)?.[1])
      .filter((minor) => minor !== undefined)
      .map(Number);
    expect(minors.length).toBeGreaterThan(0);
    expect(Math.max(...minors)).toBeLessThanOrEqual(17);
    expect([...versions.keys()].join()).not.toContain('libstdc++');
  });

  test.each(made)('for %s exports the two functions of a Node-API module and nothing else', (_, path) => {
    expect([...factsOf(path()).symbols.keys()].sort()).toEqual([
      'napi_register_module_v1',
      'node_api_module_get_api_version_v1',
    ]);
  });

  test('is found by doctor in a project without a compiler', () => {
    const { findings } = JSON.parse(run('npx', 'trtforge', 'doctor', '--json')) as {
      readonly findings: readonly { readonly id: string; readonly severity: string; readonly what: string }[];
    };
    expect(findings.find(({ id }) => id === 'machine.addon')).toMatchObject({
      severity: 'ok',
      what: expect.stringContaining(own),
    });
  });
});

describeWith('toolchain', 'a project without a compiler', () => {
  test('builds an engine from the command line, which the library finds again', () => {
    const model = staticModel(project);
    const target = 'tensorrt-rtx:sm_89';
    const built = JSON.parse(run('npx', 'trtforge', 'build', model, '--target', target, '--json')) as {
      readonly source: string;
      readonly engine: string;
    };
    expect(built.source).toBe('built');
    const script = `
      import { buildOrLoad } from 'trtforge';
      const { source, engine } = await buildOrLoad({ model: ${JSON.stringify(model)}, target: '${target}' });
      console.log(JSON.stringify({ source, engine }));`;
    writeFileSync(join(project, 'library.mjs'), script);
    expect(JSON.parse(run('node', 'library.mjs'))).toEqual({ source: 'local', engine: built.engine });
  });
});
