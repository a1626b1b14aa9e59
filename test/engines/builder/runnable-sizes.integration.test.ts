import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import type { BuildOptions } from '../../../src/engines/builder/options.js';
import { TrtforgeError } from '../../../src/errors.js';
import { ignoreEvents, type WorkEvent } from '../../../src/events.js';
import { attribute, buildModel, type Dimension, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { inspectModel } from '../../../src/formats/onnx/inspect.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { forgeBundle } from '../../../src/products/bundle/forge-bundle.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import { recordAnswer } from '../../../src/quality/known-answer/record.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { countingBuilder } from '../../fakes/builder.js';
import { writeVariant } from '../../models/kind.js';
import { kinds } from '../../models/kinds.js';
import { describeWith } from '../../support/needs.js';
import { sampleToolchain } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-sizes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const float = (shape: readonly number[], value = 0.5) => ({
  dtype: 'float32' as const,
  shape,
  bytes: new Uint8Array(new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(value).buffer),
});
const ints = (values: readonly number[], shape: readonly number[] = [values.length]) => ({
  dtype: 'int64' as const,
  shape,
  bytes: new Uint8Array(BigInt64Array.from(values, BigInt).buffer),
});

async function written(
  name: string,
  input: readonly Dimension[],
  output: readonly Dimension[],
  body: (graph: GraphBuilder) => void,
  dtype: 'float32' | 'int64' = 'float32',
): Promise<string> {
  const graph = new GraphBuilder(name);
  graph.input('x', dtype, input);
  body(graph);
  graph.output('y', 'float32', output);
  const path = join(folder, `${name}.onnx`);
  await writeModel(buildModel(graph), path);
  return path;
}

/** A table of positions under tokens: `rows` gives the rows that are taken of it. */
const positions = (name: string, table: number, rows: (graph: GraphBuilder) => void) =>
  written(
    name,
    ['batch', 'seq'],
    ['batch', 'seq', 8],
    (graph) => {
      graph.initializer('words', float([100, 8]));
      graph.initializer('table', float([table, 8]));
      graph.initializer('zero', ints([0], []));
      graph.initializer('one', ints([1], []));
      graph.node('Gather', { inputs: ['words', 'x'], outputs: ['embedded'], name: 'word' });
      graph.node('Shape', { inputs: ['x'], outputs: ['shape'] });
      graph.node('Gather', { inputs: ['shape', 'one'], outputs: ['length'] });
      rows(graph);
      graph.node('Add', { inputs: ['embedded', 'rows'], outputs: ['y'], name: 'sum' });
    },
    'int64',
  );

const models = {
  tile: await written('tile', ['batch', 4], ['batch', 4], (graph) => {
    graph.initializer('query', float([1, 4]));
    graph.initializer('repeats', ints([8, 1]));
    graph.node('Tile', { inputs: ['query', 'repeats'], outputs: ['tiled'], name: 'tile' });
    graph.node('Add', { inputs: ['x', 'tiled'], outputs: ['y'], name: 'sum' });
  }),
  /** Nothing is declared of the output, so that a stretched 1 contradicts nothing. */
  undeclared: await written('undeclared', ['batch', 4], [null, 4], (graph) => {
    graph.initializer('bias', float([8, 4]));
    graph.node('Mul', { inputs: ['x', 'bias'], outputs: ['y'], name: 'scale' });
  }),
  concat: await written('concat', ['batch', 5, 4], ['batch', 6, 4], (graph) => {
    graph.initializer('shape', ints([8, 1, 4]));
    graph.node('ConstantOfShape', { inputs: ['shape'], outputs: ['token'] });
    graph.node('Concat', {
      inputs: ['token', 'x'],
      outputs: ['y'],
      name: 'join',
      attributes: { axis: attribute.int(1) },
    });
  }),
  expand: await written('expand', ['batch', 4], ['batch', 4], (graph) => {
    graph.initializer('query', float([1, 4]));
    graph.initializer('shape', ints([6, 4]));
    graph.node('Expand', { inputs: ['query', 'shape'], outputs: ['queries'] });
    graph.node('Mul', { inputs: ['x', 'queries'], outputs: ['y'], name: 'product' });
  }),
  lstm: await written('lstm', ['time', 'N', 3], ['time', 1, 'N', 2], (graph) => {
    graph.initializer('w', float([1, 8, 3]));
    graph.initializer('r', float([1, 8, 2]));
    graph.initializer('h', float([1, 4, 2]));
    graph.initializer('c', float([1, 4, 2]));
    graph.node('LSTM', {
      inputs: ['x', 'w', 'r', '', '', 'h', 'c'],
      outputs: ['y'],
      name: 'lstm',
      attributes: { hidden_size: attribute.int(2) },
    });
  }),
  added: await positions('added', 128, (graph) =>
    graph.node('Identity', { inputs: ['table'], outputs: ['rows'] }),
  ),
  gathered: await positions('gathered', 64, (graph) => {
    graph.node('Range', { inputs: ['zero', 'length', 'one'], outputs: ['ids'] });
    graph.node('Gather', { inputs: ['table', 'ids'], outputs: ['rows'], name: 'position' });
  }),
  sliced: await positions('sliced', 48, (graph) => {
    graph.initializer('start', ints([0]));
    graph.initializer('axis', ints([0]));
    graph.node('Unsqueeze', { inputs: ['length', 'axis'], outputs: ['end'] });
    graph.node('Slice', { inputs: ['table', 'start', 'end', 'axis'], outputs: ['rows'], name: 'position' });
  }),
  reshaped: await written('reshaped', ['batch', 'time'], [null, 8, 8], (graph) => {
    graph.initializer('target', ints([-1, 8, 8]));
    graph.node('Reshape', { inputs: ['x', 'target'], outputs: ['y'], name: 'view' });
  }),
};

const obtain = (
  model: string,
  sizes: Pick<BuildOptions, 'batch' | 'dims' | 'profiles'>,
  emit: (event: WorkEvent) => void = ignoreEvents,
  build = countingBuilder().build,
) =>
  buildOrLoad(
    {
      model,
      target: 'tensorrt-rtx:sm_89',
      toolchain: sampleToolchain,
      store: false,
      output: `${model}.engine`,
      ...sizes,
    },
    { build, emit, environment: { XDG_CACHE_HOME: join(folder, 'cache') } },
  );

async function rejected(attempt: Promise<unknown>): Promise<TrtforgeError> {
  const error: unknown = await attempt.then(
    () => undefined,
    (reason) => reason,
  );
  if (error instanceof TrtforgeError) return error;
  throw new Error(`a TrtforgeError was expected, not ${String(error)}`);
}

describeWith('onnxruntime', 'sizes that a model does not run with', () => {
  test.each([
    ['tile', { batch: '1/8/8' }, 'batch', [8, 8, 8], /declared as \[batch, 4\] and is \[8, 4\]/],
    ['tile', { batch: '2/4/6' }, 'batch', [8, 8, 8], /Add "sum"/],
    ['undeclared', { batch: '1/8/8' }, 'batch', [8, 8, 8], /Mul "scale"/],
    ['concat', { batch: '1/4/8' }, 'batch', [8, 8, 8], /Concat "join": .*dimensions of 4 and 8/],
    ['expand', { batch: '1/6/8' }, 'batch', [6, 6, 6], /declared as \[batch, 4\] and is \[6, 4\]/],
    ['lstm', { dims: { N: '1/4/8', time: '2/4/6' } }, 'N', [4, 4, 4], /initial_h|LSTM/],
    ['added', { batch: '1/2/4', dims: { seq: '16/128/256' } }, 'seq', [128, 128, 128], /Add "sum"/],
    ['gathered', { batch: '1/2/4', dims: { seq: '8/32/256' } }, 'seq', [8, 32, 64], /64/],
    ['sliced', { batch: '1/2/4', dims: { seq: '8/32/256' } }, 'seq', [8, 32, 48], /48 by 256/],
    ['reshaped', { profiles: ['x:1x16/1x64/1x256'] }, 'time', [64, 64, 256], /Reshape "view"/],
    ['reshaped', { profiles: ['x:1x16'] }, 'batch', [4, 4, 4], /Reshape "view"/],
  ] as const)('%s with %o: only those of %s run', async (name, sizes, symbol, [min, opt, max], reason) => {
    const builder = countingBuilder();
    const error = await rejected(obtain(models[name], sizes, ignoreEvents, builder.build));
    expect(error.code).toBe('TF_PROFILE_INVALID');
    expect(error.message).toMatch(reason);
    expect(error.details).toMatchObject({ dimensions: [{ runs: { min, opt, max } }] });
    expect(builder.count()).toBe(0);
    // The remedy, as it is typed.
    const typed = /Pass (.*)\. Other sizes/.exec(error.remedy)?.[1] ?? '';
    const batch = /--batch (\S+)/.exec(typed)?.[1];
    const dims = Object.fromEntries(
      [...typed.matchAll(/--dim (\w+)=(\S+)/g)].map(([, dim, range]) => [dim, range]),
    );
    expect({ ...dims, ...(batch && { batch }) }).toMatchObject({ [symbol]: `${min}/${opt}/${max}` });
    const built = await obtain(models[name], { ...(batch && { batch }), dims });
    expect(built.passport.built.sizes?.skipped).toEqual([]);
  });
});

describeWith('onnxruntime', 'sizes before a build', () => {
  const warningsOf = async (model: string, sizes: Parameters<typeof obtain>[1]) => {
    const warnings: string[] = [];
    const { passport } = await obtain(model, sizes, (event) => {
      if (event.type === 'log' && event.severity === 'warning') warnings.push(event.message);
    });
    return { sizes: passport.built.sizes, warnings };
  };

  test('are every end of every profile, and batch 2 where the smallest is 1', async () => {
    const model = await written('open', ['batch', 'time'], ['batch', 'time'], (graph) =>
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] }),
    );
    const { sizes, warnings } = await warningsOf(model, {
      profiles: ['x:1x8/4x16/8x32', 'x:2x8', 'x:1x8/2x8/4x8'],
    });
    expect(sizes).toEqual({
      ran: ['x:4x16', 'x:1x8', 'x:2x8', 'x:8x32', 'x:2x8', 'x:2x8', 'x:1x8', 'x:4x8'],
      skipped: [],
    });
    expect(warnings).toEqual([]);
  });

  test('have the values that shape tensors have there', async () => {
    const graph = new GraphBuilder('values');
    graph.input('x', 'float32', [1, 4]);
    graph.input('k', 'int64', [2]);
    graph.initializer('bias', float([3, 4]));
    graph.node('Expand', { inputs: ['x', 'k'], outputs: ['wide'], name: 'wide' });
    graph.node('Concat', {
      inputs: ['wide', 'bias'],
      outputs: ['y'],
      name: 'join',
      attributes: { axis: attribute.int(1) },
    });
    graph.output('y', 'float32', [null, 8]);
    const model = join(folder, 'values.onnx');
    await writeModel(buildModel(graph), model);
    expect((await warningsOf(model, { profiles: ['k=3x4/3x4/3x4'] })).sizes?.ran).toEqual(['k=3x4']);
    const error = await rejected(obtain(model, { profiles: ['k=1x4/3x4/5x4'] }));
    expect(error.message).toMatch(/does not run with k=1x4: Concat "join".*runs with k=3x4/);
    const [, profile = ''] = /--profile (\S+)\. /.exec(error.remedy) ?? [];
    expect((await obtain(model, { profiles: [profile] })).source).toBe('built');
  });

  test('are skipped by name for an operator that ONNX Runtime lacks', async () => {
    const model = await written('plugin', ['batch', 4], ['batch', 4], (graph) =>
      graph.node('Twirl', { inputs: ['x'], outputs: ['y'], domain: 'acme' }),
    );
    const { sizes, warnings } = await warningsOf(model, { batch: '1/4/8' });
    expect(sizes).toEqual({
      ran: [],
      skipped: ['x:4x4', 'x:1x4', 'x:2x4', 'x:8x4'].map((each) => ({
        sizes: each,
        reason: 'ONNX Runtime does not take the model',
      })),
    });
    expect(warnings).toEqual([expect.stringContaining('ONNX Runtime does not take the model')]);
  });

  test('are skipped by name without ONNX Runtime', async () => {
    vi.stubEnv('ORT_HOME', folder);
    const { sizes, warnings } = await warningsOf(models.concat, { batch: '1/4/8' });
    vi.unstubAllEnvs();
    expect(sizes?.skipped.map(({ reason }) => reason)).toEqual(
      new Array(4).fill('ONNX Runtime is not installed'),
    );
    expect(warnings).toEqual([expect.stringContaining('ONNX Runtime is not installed')]);
  });

  test('that cost too much are skipped by name, and run with the smallest batch', async () => {
    const model = await written('costly', ['batch', 'time', 512], ['batch', 'time', 512], (graph) => {
      graph.initializer('w', float([512, 512]));
      graph.node('MatMul', { inputs: ['x', 'w'], outputs: ['y'] });
    });
    const { sizes } = await warningsOf(model, { batch: '1/2/1000000', dims: { time: '1/2/3' } });
    expect(sizes).toEqual({
      ran: ['x:2x2x512', 'x:1x1x512', 'x:1x3x512'],
      skipped: [{ sizes: 'x:1000000x3x512', reason: expect.stringContaining('FLOPs') }],
    });
  });

  test('of a model that takes no drawn values are skipped, not rejected', async () => {
    const model = await written('picky', ['batch', 4], ['batch', 4], (graph) => {
      graph.initializer('table', float([2, 4]));
      graph.initializer('far', ints([7]));
      graph.node('Gather', { inputs: ['table', 'far'], outputs: ['row'] });
      graph.node('Add', { inputs: ['x', 'row'], outputs: ['y'] });
    });
    const { sizes } = await warningsOf(model, { batch: '1/4/8' });
    expect(sizes?.ran).toEqual([]);
    expect(sizes?.skipped.length).toBeGreaterThan(0);
  });
});

test('sizes of a model that is made of one whose sizes ran are not run again', async () => {
  const { passport } = await buildOrLoad(
    {
      model: models.concat,
      target: 'tensorrt-rtx:sm_89',
      toolchain: sampleToolchain,
      store: false,
      output: join(folder, 'known.engine'),
      batch: '1/4/8',
    },
    {
      build: countingBuilder().build,
      areSizesKnown: true,
      environment: { XDG_CACHE_HOME: join(folder, 'cache') },
    },
  );
  expect(passport.built.sizes).toBeUndefined();
});

describeWith('onnxruntime', 'a known answer', () => {
  test('is absent where an end of the profile does not run', async () => {
    const sizes = { opt: [8, 5, 4], max: [8, 5, 4], values: false };
    const recorded = (min: number) =>
      recordAnswer({
        reference: models.concat,
        precision: 'fp32',
        profiles: [{ x: { ...sizes, min: [min, 5, 4] } }],
      });
    expect(await rejected(recorded(1))).toMatchObject({
      code: 'TF_PROFILE_INVALID',
      message: expect.stringContaining('profile 0, min'),
    });
    expect((await recorded(8)).cases.map(({ name }) => name)).toEqual(['profile 0, opt']);
  });
});

describe('what the builder prints of sizes that cannot pass through the graph', () => {
  test.each([
    '(IShuffleLayer view: reshape changes volume to multiple of original non-zero volume. Reshaping [1,16] to [8,8].)',
    'Error Code 4: API Usage Error (IShuffleLayer fixed: reshape wildcard -1 has no integer solution. Reshaping [1,16] to [-1,8,8].',
    'kMAX values for profile 0 violate shape constraints: IShuffleLayer view: reshaping failed for tensor: x',
    'Profile kMIN values are not self-consistent. IShuffleLayer fixed: reshaping failed for tensor: x Reshape dimension of -1 has no solution.',
  ])(
    'is an error in a warning of a build that passes, and in an error of one that fails: %s',
    async (line) => {
      const { build } = countingBuilder();
      const ends: (typeof build)[] = [
        async (...call) => ({
          ...(await build(...call)),
          warnings: ['Make sure input x has Int64 binding.', `before\n${line}`],
        }),
        async () => {
          throw new TrtforgeError('TF_BUILD_FAILED', line);
        },
      ];
      for (const end of ends)
        expect(await rejected(obtain(models.undeclared, { batch: 8 }, ignoreEvents, end))).toMatchObject({
          code: 'TF_PROFILE_INVALID',
          details: { line },
        });
    },
  );

  test('is not seen in other lines', async () => {
    const { build } = countingBuilder();
    const warnings = ['Reshape took 4 ms', 'out of memory'];
    const { passport } = await obtain(models.undeclared, { batch: 8 }, ignoreEvents, async (...call) => ({
      ...(await build(...call)),
      warnings,
    }));
    expect(passport.warnings).toEqual(warnings);
  });
});

describe('inspect names sizes that are stored beside open dimensions', () => {
  const found = async (model: string) =>
    (await inspectModel(model)).findings
      .filter(({ code }) => code.startsWith('size-'))
      .map(({ code, where, message }) => `${code} ${where}: ${/runs with (.*?):/.exec(message)?.[1]}`);

  test.each([
    ['tile', 'size-fixed Add "sum": batch 8 only'],
    ['undeclared', 'size-fixed Mul "scale": batch 8 only'],
    ['concat', 'size-fixed Concat "join": batch 8 only'],
    ['expand', 'size-fixed Mul "product": batch 6 only'],
    ['lstm', 'size-fixed LSTM "lstm": N 4 only'],
    ['added', 'size-fixed Add "sum": seq 128 only'],
    ['gathered', 'size-limited Gather "position": seq up to 64'],
    ['sliced', 'size-limited Slice "position": seq up to 48'],
  ] as const)('%s', async (name, line) => expect(await found(models[name])).toEqual([line]));

  test('also where the size is computed, offset, or only declared of an output', async () => {
    const halved = await written('halved', ['batch', 3, 'width'], ['batch', 4, null], (graph) => {
      graph.initializer('w', float([4, 3, 2]));
      graph.initializer('bias', float([4, 16]));
      graph.node('Conv', {
        inputs: ['x', 'w'],
        outputs: ['half'],
        attributes: { strides: attribute.ints([2]), kernel_shape: attribute.ints([2]) },
      });
      graph.node('Add', { inputs: ['half', 'bias'], outputs: ['y'], name: 'sum' });
    });
    expect(await found(halved)).toEqual(['size-fixed Add "sum": width from 32 to 33 only']);
    const offset = await positions('offset', 66, (graph) => {
      graph.initializer('two', ints([2], []));
      graph.node('Range', { inputs: ['zero', 'length', 'one'], outputs: ['ids'] });
      graph.node('Add', { inputs: ['ids', 'two'], outputs: ['later'] });
      graph.node('Gather', { inputs: ['table', 'later'], outputs: ['rows'], name: 'position' });
    });
    expect(await found(offset)).toEqual(['size-limited Gather "position": seq up to 64']);
    const constant = await written('constant', ['batch', 4], ['batch', 4], (graph) => {
      graph.initializer('rows', float([8, 4]));
      graph.node('Identity', { inputs: ['rows'], outputs: ['y'], name: 'rows' });
    });
    expect(await found(constant)).toEqual(['size-fixed graph output "y": batch 8 only']);
  });

  test.each(kinds)('and nothing in a healthy $name', async (kind) => {
    const path = join(folder, 'kind.onnx');
    await writeVariant(path, kind, 0);
    expect((await found(path)).filter((line) => line.startsWith('size-fixed'))).toEqual([]);
  });

  test('and ends over a graph with a cycle', async () => {
    const cycle = await positions('cycle', 64, (graph) => {
      graph.node('Identity', { inputs: ['ids'], outputs: ['same'] });
      graph.node('Identity', { inputs: ['same'], outputs: ['ids'] });
      graph.node('Gather', { inputs: ['table', 'ids'], outputs: ['rows'] });
    });
    expect(await found(cycle)).toEqual([]);
  });

  test('and not what stretches, joins, or takes its size from the input', async () => {
    const healthy = await written('healthy', ['batch', 'seq', 4], ['batch', 'longer', 4], (graph) => {
      graph.initializer('bias', float([1, 1, 4]));
      graph.initializer('token', float([1, 1, 4]));
      graph.initializer('w', float([4, 4]));
      graph.initializer('one', ints([1]));
      graph.initializer('zero', ints([0]));
      graph.initializer('rest', ints([1, 4]));
      graph.node('Add', { inputs: ['x', 'bias'], outputs: ['a'] });
      graph.node('Shape', { inputs: ['x'], outputs: ['shape'] });
      graph.node('Gather', { inputs: ['shape', 'zero'], outputs: ['n'] });
      graph.node('Concat', {
        inputs: ['n', 'rest'],
        outputs: ['target'],
        attributes: { axis: attribute.int(0) },
      });
      graph.node('Expand', { inputs: ['token', 'target'], outputs: ['tokens'] });
      graph.node('Concat', {
        inputs: ['tokens', 'a'],
        outputs: ['joined'],
        attributes: { axis: attribute.int(1) },
      });
      graph.node('MatMul', { inputs: ['joined', 'w'], outputs: ['y'] });
    });
    expect(await found(healthy)).toEqual([]);
    expect(
      (await obtain(healthy, { batch: '1/4/8', dims: { seq: '1/8/16' } })).passport.built.sizes?.skipped,
    ).toEqual([]);
  });
});

describeWith('onnxruntime', 'an output that is declared by the name of an input dimension', () => {
  const verified = (model: string, rows: number) =>
    verifyModel({ reference: model, candidate: model, shapes: new Map([['x', [rows, 4]]]) });

  test('and has another size is an error of verify', async () => {
    expect(await rejected(verified(models.tile, 1))).toMatchObject({
      code: 'TF_OUTPUT_SIZE',
      message: expect.stringContaining('is declared as [batch, 4] and is [8, 4] where batch is 1'),
    });
    expect((await verified(models.tile, 8)).outcome).toBe('pass');
  });

  test('is absent where the graph computes the size from it: the name is a mistake of the exporter', async () => {
    const frames = await written('frames', ['T', 4], ['T', 4], (graph) => {
      graph.initializer('start', ints([0]));
      graph.initializer('end', ints([2 ** 31]));
      graph.initializer('axis', ints([0]));
      graph.initializer('step', ints([2]));
      graph.node('Slice', { inputs: ['x', 'start', 'end', 'axis', 'step'], outputs: ['y'] });
    });
    expect((await verified(frames, 8)).outcome).toBe('pass');
    expect((await obtain(frames, { dims: { T: '2/8/16' } })).passport.built.sizes?.skipped).toEqual([]);
  });
});

describeWith('toolchain', 'command lines over sizes that do not run', () => {
  const line = (verb: string, model: string, ...options: string[]) =>
    trtforge([verb, model, '--target', 'tensorrt-rtx:sm_89', ...options, '--json']);

  test('build ends with the sizes that run, and builds with them', async () => {
    const build = (batch: string) =>
      line('build', models.concat, '--no-cache', '-o', join(folder, 'concat.engine'), '--batch', batch);
    const { exitCode, json } = await build('1/4/8');
    expect(exitCode).toBe(2);
    expect(json().error).toMatchObject({
      code: 'TF_PROFILE_INVALID',
      remedy: expect.stringContaining('--batch 8/8/8'),
    });
    expect((await build('8/8/8')).exitCode).toBe(0);
  });

  test.each(['16/16/16', '16/64/256'])(
    'a bundle with time %s ends as one error, and no engine is left',
    async (time) => {
      const [meta, profilesFile] = [join(folder, 'model_meta.json'), join(folder, 'profiles.yaml')];
      writeFileSync(meta, '{}');
      writeFileSync(profilesFile, `components: { reshaped: { symbols: { batch: 1/1/1, time: ${time} } } }`);
      const outdir = join(folder, time.replaceAll('/', '-'));
      const target = 'tensorrt-rtx:sm_89';
      const report = await forgeBundle({ meta, outdir, profilesFile, target, store: false });
      expect(report.error).toMatch(/^TF_PROFILE_INVALID: .*Reshape "view"/);
      expect(report.failure?.component).toBe('reshaped');
      expect(existsSync(join(outdir, 'reshaped.engine'))).toBe(false);
    },
  );

  test('forge is no pass', async () => {
    const options = ['--precision', 'fp16', '--no-cache', '--dim', 'seq=8/32/256', '--batch', '1/2/4'];
    const { exitCode, json } = await line(
      'forge',
      models.sliced,
      ...options,
      '--run-root',
      join(folder, 'run'),
    );
    expect(exitCode).toBe(2);
    expect(json().error).toMatchObject({ phase: 'build', code: 'TF_PROFILE_INVALID' });
  });
});
