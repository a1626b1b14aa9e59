import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { integerTensor, type Tensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { describeWith } from '../../support/needs.js';
import { trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-profile-from-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const at = (...names: readonly string[]) => join(root, ...names);
const environment = { ...process.env, TENSORRT_CACHE_DIR: at('engines'), ARTIFACTS_BUCKET: '' };
const run = (...args: readonly string[]) => trtforge([...args, '--json'], environment);

const zeros = (shape: readonly number[]): Tensor =>
  tensorFrom('float32', shape, new Float32Array(shape.reduce((product, size) => product * size, 1)));
const lengths = (...values: readonly number[]) => integerTensor('int64', [values.length], values);
const npz = (path: string, tensors: Readonly<Record<string, Tensor>>) => {
  writeNpz(path, new Map(Object.entries(tensors)));
  return path;
};

let encoder: string;
let tiled: string;
let still: string;
beforeAll(async () => {
  encoder = await modelFile((graph) => {
    graph.input('x', 'float32', ['B', 8, 'T']);
    graph.input('length', 'int64', ['B']);
    graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
    graph.node('Identity', { inputs: ['length'], outputs: ['kept'] });
    graph.output('y', 'float32', ['B', 8, 'T']);
    graph.output('kept', 'int64', ['B']);
  });
  tiled = await modelFile((graph) => {
    graph.input('x', 'float32', ['n', 4]);
    graph.input('sizes', 'int64', [2]);
    graph.node('Tile', { inputs: ['x', 'sizes'], outputs: ['y'] });
    graph.output('y', 'float32', ['a', 'b']);
  });
  still = await modelFile((graph) => {
    graph.input('x', 'float32', [1, 4]);
    graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
    graph.output('y', 'float32', [1, 4]);
  });
  mkdirSync(at('clips'));
  for (const [clip, [batch, frames]] of [
    [1, 40],
    [1, 64],
    [2, 64],
    [1, 90],
  ].entries())
    npz(at('clips', `${clip}.npz`), {
      x: zeros([batch!, 8, frames!]),
      length: lengths(...Array.from({ length: batch! }, () => frames!)),
    });
  npz(at('one.npz'), { x: zeros([3, 8, 20]), length: lengths(20, 20, 20) });
  npz(at('lacking.npz'), { x: zeros([1, 8, 20]) });
  npz(at('more.npz'), { x: zeros([1, 8, 20]), length: lengths(20), y: zeros([1]) });
  npz(at('floats.npz'), { x: zeros([1, 8, 20]), length: zeros([1]) });
  npz(at('channels.npz'), { x: zeros([1, 9, 20]), length: lengths(20) });
  npz(at('unequal.npz'), { x: zeros([2, 8, 20]), length: lengths(20) });
  for (const [name, sizes] of [
    ['a', [2, 6]],
    ['b', [3, 4]],
    ['c', [3, 4]],
  ] as const)
    npz(at(`tiled-${name}.npz`), { x: zeros([3, 4]), sizes: integerTensor('int64', [2], sizes) });
  const contract = {
    schema: 'trtforge.contract/1',
    name: 'encoder',
    inputs: [
      { name: 'x', dtype: 'float32', shape: ['B', 8, 'T'] },
      { name: 'length', dtype: 'int64', shape: ['B'] },
    ],
    outputs: [{ name: 'y' }],
    profiles: [41, 57].map((frames) => ({
      name: `T${frames}`,
      ranges: {
        x: [1, 8, frames].map((size) => ({ min: size, opt: size, max: size })),
        length: [{ min: 1, opt: 1, max: 1 }],
      },
    })),
  };
  const write = (name: string, more: object) =>
    writeFileSync(at(name), JSON.stringify({ ...contract, ...more }));
  write('contract.json', {});
  write('without.json', { profiles: [] });
  write('floats.json', { inputs: [{ name: 'x' }, { name: 'length', dtype: 'float32' }] });
  writeFileSync(
    at('stream.jsonl'),
    [5, 3, 3, 3]
      .map((frames, chunk) =>
        JSON.stringify({
          chunk_idx: chunk,
          inputs: {
            x: {
              dtype: 'float32',
              shape: [1, 8, frames],
              data_b64: Buffer.alloc(32 * frames).toString('base64'),
            },
            length: [frames],
          },
          outputs: {},
          metadata: {},
        }),
      )
      .join('\n'),
  );
});

interface Planned {
  readonly resolved?: { readonly identity: string; readonly profileFrom: readonly object[] };
  readonly error?: { readonly code: string };
}

/** What `cache why` and `build --dry-run` make of a line; both decide as `build` does, and write nothing. */
async function decided(model: string, ...options: readonly string[]) {
  const target = ['--target', 'tensorrt-rtx:sm_89'];
  const { json } = await run('build', model, ...options, ...target, '--dry-run');
  const why = await run('cache', 'why', model, ...options, ...target);
  const { resolved, error } = json<{
    resolved: { identity: string; profileFrom: readonly object[]; profiles?: string };
    error?: { code: string };
  }>();
  expect(why.json().identity).toBe(resolved?.identity);
  return { ...resolved, error };
}

describeWith('toolchain', 'the profile of', () => {
  test.each<[string, readonly (string | number)[], readonly string[], string?]>([
    ['an open batch', ['batch', 3, 64, 64], [], 'images:1x3x64x64/8x3x64x64/32x3x64x64'],
    ['an open size too', ['batch', 3, 'h', 'w'], [], 'images:1x3x64x64/8x3x64x64/32x3x64x64'],
    ['a batch of its own', ['batch', 3, 'h', 'w'], ['--batch', '2'], 'images:2x3x64x64'],
    ['a batch by its name', ['batch', 3, 'h', 'w'], ['--dim', 'batch=2'], 'images:2x3x64x64'],
    ['nothing open', [1, 3, 64, 64], []],
  ])('images of one size, with %s', async (_what, shape, line, profiles) => {
    const model = await modelFile((graph) => {
      graph.input('images', 'float32', shape);
      graph.node('Relu', { inputs: ['images'], outputs: ['y'] });
      graph.output('y', 'float32', shape);
    });
    const { exitCode, json } = await run('build', model, '--imgsz', '64', ...line, '--dry-run');
    const { resolved } = json() as { resolved: { profiles?: string } };
    expect([exitCode, resolved.profiles]).toEqual([0, profiles]);
  });

  test.each([
    [['batch', 3, 32, 32], 2],
    [['batch', 3, 64, 64], 0],
    [['batch', 3, 'height', 'width'], 0],
  ] as const)('a size of images that has no effect is an error: %j', async (shape, code) => {
    const model = await modelFile((graph) => {
      graph.input('images', 'float32', shape);
      graph.node('Relu', { inputs: ['images'], outputs: ['y'] });
      graph.output('y', 'float32', shape);
    });
    const { exitCode, json } = await run(
      'build',
      model,
      '--imgsz',
      '64',
      '--dry-run',
      '--batch',
      '1',
      '--json',
    );
    expect([exitCode, json().error?.details]).toEqual(
      code === 0 ? [0, undefined] : [code, { option: '--imgsz' }],
    );
  });

  test.each<[string, () => string, readonly string[], (number | null)[], readonly string[]]>([
    [
      'a folder of calls: the median of those that are equally common is the optimum',
      () => encoder,
      ['clips'],
      [4],
      ['x:1x8x40/1x8x64/2x8x90,length:1/1/2'],
    ],
    ['one call', () => encoder, ['one.npz'], [1], ['x:3x8x20,length:3']],
    [
      'files and their order alike',
      () => encoder,
      ['one.npz', 'clips/0.npz', 'clips/1.npz'],
      [3],
      ['x:1x8x20/3x8x20/3x8x64,length:1/3/3'],
    ],
    ['npy files by input', () => encoder, ['x=@x.npy', 'length=@length.npy'], [1], ['x:2x8x7,length:2']],
    [
      'values of a shape tensor',
      () => tiled,
      ['tiled-a.npz', 'tiled-b.npz', 'tiled-c.npz'],
      [3],
      ['x:3x4,sizes=2x4/3x4/3x6'],
    ],
    [
      'a contract: its own, in its order',
      () => encoder,
      ['contract.json'],
      [null, null],
      ['x:1x8x41,length:1', 'x:1x8x57,length:1'],
    ],
    [
      'a recorded stream: all of its chunks',
      () => encoder,
      ['stream.jsonl'],
      [4],
      ['x:1x8x3/1x8x3/1x8x5,length:1'],
    ],
  ])('%s', async (_what, model, files, samples, byHand) => {
    writeNpy(at('x.npy'), zeros([2, 8, 7]));
    writeNpy(at('length.npy'), lengths(7, 7));
    const place = (file: string) => (file.includes('=@') ? file.replace('@', `@${root}/`) : at(file));
    const derived = await decided(model(), ...files.flatMap((file) => ['--profile-from', place(file)]));
    const written = await decided(model(), ...byHand.flatMap((profile) => ['--profile', profile]));
    expect(derived.identity).toBe(written.identity);
    expect(derived.profiles).toBe(written.profiles);
    expect(derived.profileFrom).toMatchObject(samples.map((count) => ({ samples: count })));
  });

  test('a model without dynamic dimensions gets no profile', async () => {
    npz(at('still.npz'), { x: zeros([1, 4]) });
    const derived = await decided(still, '--profile-from', at('still.npz'));
    expect(derived.identity).toBe((await decided(still)).identity);
    expect(derived.profileFrom).toMatchObject([{ samples: 1, profile: '' }]);
  });

  test('is what build builds, and its result names', async () => {
    const args = ['build', tiled, '--target', 'tensorrt-rtx:sm_89'];
    const files = ['a', 'b'].flatMap((name) => ['--profile-from', at(`tiled-${name}.npz`)]);
    const { json } = await run(...args, ...files);
    const built = json<{ source: string; profileFrom: { profile: string; samples: number }[] }>();
    expect(built).toMatchObject({ source: 'built', profileFrom: [{ samples: 2 }] });
    const again = await run(...args, '--profile', built.profileFrom[0]?.profile ?? '');
    expect(again.json()).toMatchObject({ source: 'local', profileFrom: [] });
  });

  test('forge names in its result and in the report of its run root', async () => {
    const args = [
      'forge',
      tiled,
      '--target',
      'tensorrt-rtx:sm_89',
      '--skip',
      'verify',
      '--run-root',
      at('run'),
    ];
    const { json } = await run(...args, '--profile-from', at('tiled-a.npz'));
    const [origin] = json<{ profileFrom: { from: string; samples: number; profile: string }[] }>()
      .profileFrom;
    expect(origin).toMatchObject({ from: at('tiled-a.npz'), samples: 1 });
    const report = (name: string) => readFileSync(at('run', name), 'utf8');
    expect(JSON.parse(report('report.json')).profileFrom).toEqual([origin]);
    expect(report('report.html')).toContain(origin?.profile);
    const byHand = await run(...args, '--profile', origin?.profile ?? '');
    expect(byHand.json().profileFrom).toEqual([]);
  });

  test('is that of the samples that calibrate or judge, where no size is set', async () => {
    const target = ['--target', 'tensorrt-rtx:sm_89', '--dry-run'];
    const origins = async (...args: readonly string[]) => {
      const { exitCode, json } = await run(...args, ...target);
      const { resolved, error } = json<Planned>();
      return [exitCode, resolved?.profileFrom ?? error?.code];
    };
    const clips = {
      from: at('clips'),
      samples: 5,
      profile: 'x:1x8x40/1x8x64/1x8x90,length:1',
    };
    const int8 = ['--precision', 'int8', '--calibration', at('clips')];
    for (const args of [
      ['forge', encoder, '--inputs', at('clips')],
      ['forge', encoder, ...int8],
      ['build', encoder, ...int8],
    ])
      expect(await origins(...args)).toEqual([0, [clips]]);
    expect(
      await origins('forge', encoder, '--inputs', at('clips'), '--profile', 'x:1x8x64,length:1'),
    ).toEqual([0, []]);
    expect(await origins('forge', encoder, '--inputs', at('lacking.npz'))).toEqual([2, 'TF_PROFILE_MISSING']);
    expect(await origins('forge', encoder)).toEqual([2, 'TF_PROFILE_MISSING']);
    expect(await origins('forge', encoder, '--inputs', at('absent.npz'))).toEqual([2, 'TF_FILE_NOT_FOUND']);
  });

  test('is a batch of 1 for forge where nothing else is open; build asks', async () => {
    const model = await modelFile((graph) => {
      graph.input('x', 'float32', ['batch', 4]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', ['batch', 4]);
    });
    const target = ['--target', 'tensorrt-rtx:sm_89', '--dry-run'];
    const planned = async (...args: readonly string[]) => (await run(...args, ...target)).json<Planned>();
    const forged = await planned('forge', model);
    expect(forged.resolved?.profileFrom).toMatchObject([{ profile: 'x:1x4', samples: null }]);
    const by = await planned('forge', model, '--batch', '1');
    expect(by.resolved?.identity).toBe(forged.resolved?.identity);
    expect((await planned('build', model)).error?.code).toBe('TF_PROFILE_MISSING');
  });

  test('of one sample is reported as such; of several it is not', async () => {
    const warnings = async (file: string) => {
      const args = ['build', encoder, '--profile-from', at(file), '--dry-run', '--events', '--json'];
      const { err } = await trtforge(args, environment);
      const events = err.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
      return events.filter(({ type, severity }) => type === 'log' && severity === 'warning').length;
    };
    expect([await warnings('one.npz'), await warnings('clips')]).toEqual([1, 0]);
  });
});

describe('rejected before anything is built:', () => {
  test.each<[string, readonly string[], string]>([
    ['another way to set profiles', ['clips', '--batch', '1'], 'TF_USAGE'],
    ['an input that is missing', ['lacking.npz'], 'TF_SESSION_INPUT'],
    ['a tensor that is no input', ['more.npz'], 'TF_SESSION_INPUT'],
    ['another dtype', ['floats.npz'], 'TF_SESSION_INPUT'],
    ['another fixed dimension', ['channels.npz'], 'TF_SESSION_INPUT'],
    ['two sizes of one symbol', ['unequal.npz'], 'TF_SESSION_INPUT'],
    ['a file that is not there', ['absent.npz'], 'TF_FILE_NOT_FOUND'],
    ['a folder without samples', ['engines-none'], 'TF_FILE_NOT_FOUND'],
    ['a contract without profiles', ['without.json'], 'TF_PROFILE_MISSING'],
    ['a contract of another dtype', ['floats.json'], 'TF_SESSION_INPUT'],
  ])('%s', async (_what, [file, ...more], code) => {
    for (const verb of ['build', 'forge']) {
      const { exitCode, json } = await run(verb, encoder, '--profile-from', at(file!), ...more);
      expect([exitCode, json().error?.code]).toEqual([2, code]);
    }
  });
});
