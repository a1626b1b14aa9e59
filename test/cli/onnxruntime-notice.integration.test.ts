import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { modelFile } from '../engines/runtime/onnxruntime/models.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-notice-'));
const packages = join(folder, 'node_modules');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let model: string;
beforeAll(async () => {
  // An installation as npm leaves it where the optional package does not install.
  mkdirSync(join(packages, 'trtforge'), { recursive: true });
  for (const name of readdirSync('node_modules').filter((each) => !each.startsWith('onnxruntime')))
    symlinkSync(join(process.cwd(), 'node_modules', name), join(packages, name));
  for (const name of ['dist', 'package.json'])
    cpSync(name, join(packages, 'trtforge', name), { recursive: true });
  model = await modelFile((graph) => {
    graph.input('x', 'float32', [1]);
    graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
    graph.output('y', 'float32', [1]);
  });
});

const run = (main: string, args: readonly string[], cache: string) =>
  spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    env: { ...process.env, HOME: folder, XDG_CACHE_HOME: join(folder, cache), ORT_HOME: '', VIRTUAL_ENV: '' },
  });
const without = join(packages, 'trtforge', 'dist', 'main.js');
const warnings = (stderr: string) =>
  stderr
    .trim()
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as { type: string; severity?: string }]))
    .filter(({ severity }) => severity === 'warning');

test('the first command without ONNX Runtime reports it, the next does not', () => {
  const [first, second] = [1, 2].map(() => run(without, ['inspect', model, '--events'], 'first'));
  expect([first?.status, second?.status]).toEqual([0, 0]);
  expect(warnings(first?.stderr ?? '')).toHaveLength(1);
  expect(warnings(second?.stderr ?? '')).toEqual([]);
});

test('what needs it fails with the remedy alone, and -q is silent', () => {
  const verify = run(without, ['verify', model, '--against', model, '--json'], 'verify');
  expect([verify.status, JSON.parse(verify.stdout).error.code]).toEqual([3, 'TF_ONNXRUNTIME_MISSING']);
  expect(verify.stderr.match(/npm install --ignore-scripts in/g)).toHaveLength(1);
  expect(run(without, ['inspect', model, '-q'], 'quiet').stderr).toBe('');
});

test('nothing is reported where it is installed', () => {
  expect(warnings(run('dist/main.js', ['inspect', model, '--events'], 'installed').stderr)).toEqual([]);
});
