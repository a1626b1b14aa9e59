import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildAddon } from '../../scripts/build-native.mjs';
import { addonPath } from '../../src/addon/addon.js';
import { readPassport } from '../../src/engines/identity/passport.js';
import { affineModel, manyLayers } from '../fakes/tensorrt/affine.js';
import { type FakeEngine, fakeEngine } from '../fakes/tensorrt/engine.js';
import type { Answer, Fake } from '../fakes/tensorrt/library.js';
import { trtforge } from '../support/trtforge.js';

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const driver = file('../fakes/tensorrt/drive.mjs');
const sessions = file('../engines/runtime/tensorrt/fake-session.mjs');
const program = file('../../bin/trtforge.cjs');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-nvtx-'));
const at = (name: string) => join(folder, name);
let engines: FakeEngine;
let environment: NodeJS.ProcessEnv = {};
/** What makes a process a client of the profiler that records. */
let recording: Record<string, string> = {};

beforeAll(async () => {
  await buildAddon({ say: () => {} });
  engines = await fakeEngine('10');
  engines.writePlan(at('affine.engine'), {
    kind: 'affine',
    inner: 4,
    layers: manyLayers,
    weights: { two: 2, one: 1 },
  });
  recording = { NVTX_INJECTION64_PATH: engines.bench.profiler('records'), NVTX_RECORD: at('record') };
  environment = engines.environment({
    TENSORRT_HOME: engines.install(at('home')),
    TRTFORGE_TOOLCHAINS: at('none'),
    XDG_CACHE_HOME: at('cache'),
    FAKE_PLAN: at('affine.engine'),
    FAKE_CALLS: at('calls'),
    NO_COLOR: '1',
  });
});
beforeEach(() => rmSync(at('record'), { force: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const marks = () =>
  readFileSync(at('record'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const [process, thread, what, domain, id, name] = line.split('\t') as [string, string, ...string[]];
      return { process, thread, what, domain, id, name: name ?? '' };
    });

/** Ranges of threads as paths from the outermost, and those from start to end; each has ended, on its thread or by its number. */
function ranges() {
  const open = new Map<string, string[]>();
  const started = new Map<string, { name: string; thread: string }>();
  const [paths, spans]: [string[], string[]] = [[], []];
  const moved = new Set<string>();
  for (const { process, thread, what, id, name } of marks()) {
    const stack = open.get(thread) ?? [];
    open.set(thread, stack);
    if (what === 'push') paths.push([...stack, name].join(' > '));
    if (what === 'push') stack.push(name);
    if (what === 'pop') expect(stack.pop()).toBeDefined();
    if (what === 'start') spans.push(name);
    if (what === 'start') started.set(`${process} ${id}`, { name, thread });
    if (what === 'end') {
      const span = started.get(`${process} ${id}`);
      expect(span).toBeDefined();
      if (span !== undefined && span.thread !== thread) moved.add(span.name);
      started.delete(`${process} ${id}`);
    }
  }
  expect([...open.values()].flat()).toEqual([]);
  expect([...started.values()]).toEqual([]);
  return { paths, spans, moved: [...moved] };
}

/** Builds in a process of its own, as the addon does. */
function build(fake: Fake, wishes: Record<string, string>, ...cancelAfterMs: readonly string[]) {
  const request = engines.bench.buildRequest(fake, { planPath: at('built.plan') });
  const words = [driver, addonPath, 'build', JSON.stringify(request), ...cancelAfterMs];
  const env = engines.environment(wishes);
  const { stdout } = spawnSync(process.execPath, words, { encoding: 'utf8', env });
  return JSON.parse(stdout) as Answer<unknown>;
}

const warningsOf = ({ events }: Answer<unknown>) =>
  events.filter((event) => event.type === 'log' && event.severity === 2);

/** Sessions in a process of their own; what they found. */
function calls(wishes: Record<string, string>) {
  const toolchain = JSON.stringify(engines.bench.toolchain('10'));
  const words = [sessions, toolchain, folder, 'affine', 'prepared'];
  const env = { ...environment, ...wishes };
  const { stdout } = spawnSync(process.execPath, words, { encoding: 'utf8', env });
  return stdout;
}

describe('a build under a profiler', () => {
  it.each(['10', '11', 'rtx1'] as const)('of generation %s shows its phases', (fake) => {
    expect(build(fake, recording).error).toBeUndefined();
    const { paths, spans, moved } = ranges();
    expect(marks()[0]).toMatchObject({ what: 'attach', id: '3', name: '16 9 15 7 16 7' });
    const outer = 'build /models/m.onnx';
    expect(paths).toEqual([outer, `${outer} > parse`, `${outer} > write plan`]);
    expect(spans).toEqual(['Building engine', 'Timing tactics', ...Array(1000).fill('Measuring a tactic')]);
    expect(moved).toEqual(['Timing tactics']);
  });

  it('of 8.6, which has no phases, shows its own', () => {
    expect(build('8', recording).error).toBeUndefined();
    expect(ranges()).toMatchObject({ paths: { length: 3 }, spans: [] });
  });

  it.each([
    ['a model is rejected', { FAKE_MODEL: 'refused' }, 'TF_MODEL_REJECTED', 2, []],
    ['it fails', { FAKE_BUILD: 'fails' }, 'TF_BUILD_FAILED', 2, []],
    ['it fails amid its phases', { FAKE_BUILD: 'leaves' }, 'TF_BUILD_FAILED', 2, ['Timing tactics']],
    ['it is cancelled', { FAKE_BUILD: 'waits' }, 'TF_CANCELLED', 2, ['Timing tactics']],
  ] as const)('ends every range when %s', (_, wishes, code, length, spans) => {
    const { error } = build('10', { ...recording, ...wishes }, '100');
    expect(error?.code).toBe(code);
    expect(ranges()).toMatchObject({ paths: { length }, spans: expect.arrayContaining([...spans]) });
  });
});

describe('calls under a profiler', () => {
  it('have one range each, with the name of the plan where no passport states another', () => {
    const found = calls({});
    expect(calls(recording)).toBe(found);
    const { paths } = ranges();
    const of = (name: string) => paths.filter((path) => path === name).length;
    // Of `affine` four by promise and a blocking one, of `prepared` one of either.
    expect(of('affine.engine')).toBe(7);
    expect(of('load affine.engine')).toBe(2);
    expect(of('prepare affine.engine')).toBeGreaterThan(2);
    expect(paths).toHaveLength(9 + of('prepare affine.engine'));
  });

  it('do not record where no profiler asks for it', () => {
    calls({ NVTX_RECORD: at('record') });
    const off = { ...recording, NVTX_INJECTION64_PATH: '' };
    calls(off);
    expect(warningsOf(build('10', off))).toEqual([]);
    expect(existsSync(at('record'))).toBe(false);
  });

  it.each([
    ['is not there', () => at('absent.so'), /absent\.so cannot be loaded: .*No such file/],
    [
      'lacks the function',
      () => engines.inferenceLibrary,
      /inference\.so has no function InitializeInjectionNvtx2/,
    ],
    ['does not start', () => engines.bench.profiler('refuses'), /refuses\.so does not start: /],
  ])('work as ever where its library %s, and a warning states it', (_, library, words) => {
    const wishes = { ...recording, NVTX_INJECTION64_PATH: library() };
    expect(calls(wishes)).toBe(calls({}));
    const built = build('10', wishes);
    expect(built.error).toBeUndefined();
    expect(existsSync(at('record'))).toBe(false);
    expect(warningsOf(built)).toEqual([{ type: 'log', severity: 2, message: expect.stringMatching(words) }]);
    const line = ['bench', at('affine.engine'), '--duration', '0', '--iterations', '2'];
    const shown = spawnSync(process.execPath, [program, ...line], {
      encoding: 'utf8',
      env: { ...environment, ...wishes },
    });
    expect(shown.stderr).toMatch(words);
    expect(shown.stderr).toContain('let NVTX_INJECTION64_PATH name its library, or unset it');
    expect(shown.status).toBe(0);
  });
});

describe('command lines under a profiler', () => {
  it('name engines by name and identity: build, run, bench, engine refit', async () => {
    engines.bench.enter({ ...environment, ...recording });
    const lineOf = async (...line: readonly string[]) => {
      rmSync(at('record'), { force: true });
      const { exitCode, out } = await trtforge([...line, '--json'], process.env);
      expect(exitCode, out).toBe(0);
      return ranges().paths;
    };
    const engine = at('model.engine');
    const batch = ['--batch', '1/8/64', '--refit', '--no-cache', '-o', engine];
    const built = await lineOf('build', await affineModel(), ...batch);
    expect(built.filter((path) => / > parse$/.test(path))).toHaveLength(1);
    const { name, identity } = readPassport(engine);
    const label = `${name} ${identity.digest.slice(0, 12)}`;
    const random = ['--inputs', 'random', '--shapes', 'x:2x4', '--iterations', '5'];
    const ran = await lineOf('run', engine, ...random);
    expect(new Set(ran)).toEqual(new Set([`load ${label}`, `prepare ${label}`, label]));
    expect(ran.filter((path) => path === label)).toHaveLength(5);
    const measured = await lineOf('bench', engine, '--duration', '0', '--warm-up', '0', '--iterations', '20');
    expect(new Set(measured)).toEqual(new Set([`load ${label}`, `prepare ${label}`, label]));
    expect(measured.filter((path) => path === label).length).toBeGreaterThanOrEqual(20);
    const retrained = await affineModel({ two: 3, one: 4 });
    const refitted = await lineOf('engine', 'refit', engine, retrained, '-o', at('new.engine'));
    expect(refitted).toEqual(expect.arrayContaining(['load model.engine', 'refit model.engine']));
  });
});
