import { execFileSync, spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}
const manifest = JSON.parse(read('package.json')) as Manifest;

/** What `npm pack` would put into the package. */
function packed(): readonly string[] {
  const answer = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 2 ** 26,
  });
  const report = JSON.parse(answer) as Record<string, unknown>;
  const [first] = Object.values(report) as [{ readonly files: readonly { readonly path: string }[] }];
  return first.files.map(({ path }) => path);
}

/** Packages that a module asks for: by import, import() or a function made with createRequire. */
function packagesOf(source: string): readonly string[] {
  const asked =
    /(?:^(?:import|export)\s[^'"]*?from |^import |\bimport\(|require\(|require\.resolve\(|createRequire\(import\.meta\.url\)(?:\.resolve)?\()'([^'./][^']*)'/gm;
  return [...source.matchAll(asked)]
    .map(([, name = '']) => name)
    .filter((name) => !isBuiltin(name))
    .map((name) =>
      name
        .split('/')
        .slice(0, name.startsWith('@') ? 2 : 1)
        .join('/'),
    );
}

describe('the package that npm packs', () => {
  const files = packed();

  test('asks for nothing that an installation does not bring', () => {
    const { dependencies, optionalDependencies, peerDependencies } = manifest;
    const brought = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
    const asked = new Set(
      files.filter((path) => /\.m?js$/.test(path)).flatMap((path) => packagesOf(read(path))),
    );
    expect([...asked].filter((name) => !brought.includes(name))).toEqual([]);
    expect([...asked]).toContain('node-api-headers');
  });

  test('works where the interface of telemetry is not installed', () => {
    const script = `
      import { register } from 'node:module';
      register('data:text/javascript,' + encodeURIComponent(\`
        export function resolve(name, context, next) {
          if (name !== '@opentelemetry/api') return next(name, context);
          throw Object.assign(new Error('not installed'), { code: 'ERR_MODULE_NOT_FOUND' });
        }\`));
      const { openGuardTelemetry } = await import(${JSON.stringify(join(root, 'dist/products/streaming/index.js'))});
      const listener = await openGuardTelemetry({ model: 'm' });
      listener.step(1, false);
      listener.error('y', 1);
      console.log(Object.keys(listener).sort().join(' '));`;
    const child = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    expect([child.status, child.stdout]).toEqual([0, 'error step violation\n']);
  });

  test('holds every page of the documentation that its README and its messages name', () => {
    const texts = files.filter((path) => path === 'README.md' || path.endsWith('.js')).map(read);
    const pages = new Set(texts.flatMap((text) => text.match(/\bdocs\/(?!evidence)[\w-]+\.md/g) ?? []));
    expect(pages).toContain('docs/gate.md');
    // onnx-tensorrt's own page is named as a source.
    expect([...pages].filter((page) => !files.includes(page) && page !== 'docs/operators.md')).toEqual([]);
  });
});

/** Places that only trtforge's own tests put something else into; a program has no need to name what stands there. */
const SEAMS = ['StartMeasurer', 'EngineAddon'];

describe('the library', () => {
  test('exports at most 26 values, and loads no room until one is called', async () => {
    const script = `
      const library = await import(${JSON.stringify(join(root, 'dist/index.js'))});
      console.log(JSON.stringify(Object.keys(library)));`;
    const names = JSON.parse(
      execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }),
    ) as readonly string[];
    expect(names.length).toBeLessThanOrEqual(26);
    // A tensor is made at once.
    const eager = [...read('src/index.ts').matchAll(/^(?:import|export) (?!type)[^;]*? from '([^']+)'/gm)];
    expect(eager.map(([, path]) => path)).toEqual(['./errors.js', './formats/tensor/tensor.js']);
  });
});

test('prepare, which npm runs in the clone of an installation from git, makes all that is packed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-from-git-'));
  const run = (program: string, words: readonly string[], cwd = folder) =>
    execFileSync(program, words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    run('git', ['clone', '--quiet', '--depth', '1', `file://${root}`, 'clone']);
    symlinkSync(join(root, 'node_modules'), join(folder, 'clone/node_modules'));
    // Apart, since whoever sets ignore-scripts keeps npm from running it.
    run('npm', ['run', 'prepare'], join(folder, 'clone'));
    run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], join(folder, 'clone'));
    const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
    run('tar', ['-xzf', tarball]);
    symlinkSync(join(root, 'node_modules'), join(folder, 'package/node_modules'));
    const version = run(process.execPath, [join(folder, 'package/bin/trtforge.cjs'), '--version']);
    expect(version).toContain((JSON.parse(read('package.json')) as { readonly version: string }).version);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

describe('a program that emits declarations', () => {
  test.each([
    ['trtforge', 'index.js', 'buildOrLoad'],
    ['trtforge/streaming', 'products/streaming/index.js', 'guard'],
    ['trtforge/bundle', 'products/bundle/index.js', 'forgeBundle'],
    ['trtforge/deepstream', 'products/deepstream/index.js', 'streams'],
    ['trtforge/evaluation', 'products/evaluation/index.js', 'scoreDetections'],
    ['trtforge/triton', 'products/triton/index.js', 'checkRepository'],
    ['trtforge/fleet', 'products/fleet/index.js', 'planFleet'],
    ['trtforge/edit', 'products/edit/index.js', 'editOnnx'],
    ['trtforge/trtexec', 'tensorrt/trtexec/index.js', 'readTrtexecLog'],
    ['trtforge/onnx', 'formats/onnx/index.js', 'openModel'],
  ])('can name what the functions of %s take and give', async (name, file, known) => {
    const library = (await import(join(root, 'dist', file))) as Readonly<Record<string, unknown>>;
    const functions = Object.entries(library)
      .filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name))
      .map(([name]) => name);
    const lines = functions.flatMap((name) => [
      `const ${name}Asked = [] as unknown as Parameters<typeof door.${name}>;`,
      `export const ${name}Given = ${name}Asked.at(0);`,
      `export const ${name}Result = await door.${name}(...${name}Asked);`,
    ]);
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-door-'));
    try {
      // As npm lays it out: what trtforge depends on lies beside it.
      mkdirSync(join(folder, 'node_modules/trtforge'), { recursive: true });
      for (const part of ['dist', 'package.json'])
        symlinkSync(join(root, part), join(folder, 'node_modules/trtforge', part));
      for (const name of readdirSync(join(root, 'node_modules')).filter((each) => !each.startsWith('.')))
        symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
      writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
      writeFileSync(
        join(folder, 'door.ts'),
        [
          // Types of sessions and tensors are those of the library.
          "import 'trtforge';",
          `import * as door from '${name}';`,
          ...lines,
        ].join('\n'),
      );
      const compilerOptions = {
        target: 'es2023',
        module: 'nodenext',
        strict: true,
        verbatimModuleSyntax: true,
        declaration: true,
        outDir: 'out',
        types: ['node'],
        preserveSymlinks: true,
      };
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
      const tsc = join(root, 'node_modules/typescript/bin/tsc');
      const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' });
      const complaints = stdout.split('\n').filter((line) => line !== '');
      expect(functions).toContain(known);
      expect(complaints.filter((line) => !SEAMS.some((seam) => line.includes(`'${seam}'`)))).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
