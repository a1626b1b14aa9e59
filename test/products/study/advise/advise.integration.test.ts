import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digestModelFile } from '../../../../src/engines/identity/model-digest.js';
import { openSession } from '../../../../src/engines/runtime/open-session.js';
import { TrtforgeError } from '../../../../src/errors.js';
import { attribute as a, GraphBuilder } from '../../../../src/formats/onnx/builder.js';
import { openModel } from '../../../../src/formats/onnx/model.js';
import { writeNpz } from '../../../../src/formats/tensor/npz.js';
import { numbersOf, type Tensor } from '../../../../src/formats/tensor/tensor.js';
import { advise } from '../../../../src/products/study/advise/advise.js';
import type { AdviseContext, AdviseRequest } from '../../../../src/products/study/advise/options.js';
import { adviseReport, decisionOf } from '../../../../src/products/study/advise/page.js';
import { type Advice, adviceSchema } from '../../../../src/products/study/advise/result.js';
import type { Scorer } from '../../../../src/quality/tasks/task.js';
import type { VerifyResult } from '../../../../src/quality/verify/result.js';
import { renderReport } from '../../../../src/report/pages/report.js';
import { floats, freshPath, noise, written } from '../../../formats/precision/judge.js';
import { leftByKilledRun } from '../../../support/killed-run.js';
import { trtforge } from '../../../support/trtforge.js';

/** Four convolutions in a row; the weights of the third have outliers, so it is the one that suffers in 8 bits. */
function network(): GraphBuilder {
  const g = new GraphBuilder('network');
  g.input('x', 'float32', ['n', 16, 8, 8]);
  let value = 'x';
  for (const [index, name] of ['first', 'second', 'third', 'fourth'].entries()) {
    const weight = noise([16, 16, 3, 3], 0.15, index + 1);
    const values = Float32Array.from(numbersOf(weight));
    if (name === 'third') for (let channel = 0; channel < 16; channel++) values[144 * channel] = 12;
    g.initializer(`${name}.weight`, { ...weight, bytes: new Uint8Array(values.buffer) });
    const made = g.node('Conv', {
      name,
      inputs: [value, `${name}.weight`],
      outputs: [`${name}.out`],
      attributes: { pads: a.ints([1, 1, 1, 1]) },
    });
    value = g.node('Tanh', { name: `${name}.tanh`, inputs: [made], outputs: [`${name}.tanh.out`] });
  }
  g.node('GlobalAveragePool', { name: 'pool', inputs: [value], outputs: ['pooled'] });
  g.output('pooled', 'float32', ['n', 16, 1, 1]);
  return g;
}

const samples = (count: number, seed = 5) => {
  const path = freshPath('.npz');
  writeNpz(path, new Map<string, Tensor>([['x', noise([count, 16, 8, 8], 1, seed)]]));
  return path;
};

const model = await written(network());
const data = samples(16);

const request = (more: Partial<AdviseRequest> = {}): AdviseRequest => ({
  model,
  precision: 'int8',
  data: [data],
  heldOut: [],
  preparation: {},
  method: 'max',
  conversion: {},
  budget: { kind: 'sqnr', db: 20 },
  output: freshPath('/advice'),
  threads: 1,
  ...more,
});

const codeOf = (more: Partial<AdviseRequest>, context: AdviseContext = {}) =>
  advise(request(more), context).then(
    () => 'no error',
    (error) => (error instanceof TrtforgeError ? error.code : String(error)),
  );

const quantized = ({ units }: Advice) => units.filter((unit) => unit.quantized).map(({ name }) => name);
const chosenOf = ({ choices, chosen }: Advice) => choices.find(({ id }) => id === chosen)!;
const without = await advise(request({ budget: { kind: 'sqnr', db: 1 } }));
const alone = new Map(without.units.map(({ name, alone: { sqnrDb } }) => [name, Number(sqnrDb)]));

describe('the nodes that are quantized', () => {
  it('are all where all keep the budget', () => {
    expect(adviceSchema.parse(without)).toEqual(without);
    expect(quantized(without)).toEqual(['first', 'second', 'third', 'fourth']);
    expect(without.chosen).toBe(without.all);
    expect(without.samples).toMatchObject({ calibration: 12, heldOut: 4 });
  });

  it('leave out the one that suffers, and the rest keeps the budget', async () => {
    const worst = [...alone].reduce((least, each) => (each[1] < least[1] ? each : least));
    expect(worst[0]).toBe('third');
    const all = Number(without.choices.find(({ id }) => id === without.all)?.sqnrDb);
    const result = await advise(request({ budget: { kind: 'sqnr', db: all + 3 } }));
    expect(quantized(result)).toEqual(['first', 'second', 'fourth']);
    expect(Number(chosenOf(result).sqnrDb)).toBeGreaterThanOrEqual(all + 3);
    // Same kernels, same images: a quarter each.
    expect(result.units.map(({ macsShare }) => macsShare)).toEqual([0.25, 0.25, 0.25, 0.25]);
    expect(chosenOf(result)).toMatchObject({ macsShare: 0.75, weightsShare: 0.75 });
    expect(result.front).toContain(result.chosen);
    const { points, error } = decisionOf(result);
    const tried = result.choices.filter(({ role }) => role !== 'fp32');
    expect(tried.filter((_, at) => points[at]?.isFront).map(({ id }) => id)).toEqual(result.front);
    // What keeps the budget is below the limit, and no other.
    expect(points.map((point) => Number(point.error) <= error.limit!)).toEqual(
      tried.map(({ sqnrDb }) => Number(sqnrDb) >= all + 3),
    );
    expect(result.units.find(({ name }) => name === 'third')?.why).toMatch(/^Left out/);
  });

  it('are those of the model that is written, which the line of the result makes again', async () => {
    const result = await advise(request({ budget: { kind: 'sqnr', db: (alone.get('first') ?? 0) - 3 } }));
    const stored = openModel(result.output).proto.graph!.initializer.map(({ name }) => name);
    const low = stored.filter((name) => name.endsWith('.weight_quantized'));
    expect(low.map((name) => name.split('.')[0])).toEqual(quantized(result));
    expect(quantized(result).length).toBeLessThan(4);
    const [, ...line] = /^trtforge (.*)$/.exec(result.convert.replaceAll("'", ''))?.[1]?.split(' ') ?? [];
    const again = freshPath();
    const { exitCode } = await trtforge(['convert', ...line.slice(0, -1), again, '--json']);
    expect(exitCode).toBe(0);
    expect(await digestModelFile(again)).toBe(await digestModelFile(result.output));
    // Nodes that are left out are in 16 bits, not in FP32.
    const types = openModel(result.output).proto.graph!.initializer;
    expect(types.filter(({ name, dataType }) => /\.weight/.test(name) && dataType === 1)).toEqual([]);
  });

  it('are judged by the values beside infinities that all choices have', async () => {
    const g = network();
    const mask = new Uint8Array(16).fill(1, 8);
    g.initializer('mask', { dtype: 'bool', shape: [16, 1, 1], bytes: mask });
    g.initializer('masked', floats([], [Number.NEGATIVE_INFINITY]));
    g.node('Where', { name: 'where', inputs: ['mask', 'masked', 'pooled'], outputs: ['logits'] });
    g.output('logits', 'float32', ['n', 16, 1, 1]);
    const result = await advise(request({ model: await written(g) }));
    expect(result.judged).toContain('logits');
    expect(quantized(result)).toHaveLength(4);
  });

  it('are judged by samples of their own where there are some', async () => {
    const result = await advise(request({ heldOut: [samples(6, 9)] }));
    expect(result.samples).toMatchObject({ calibration: null, heldOut: 6 });
  });

  it('may have their weights alone quantized', async () => {
    const g = new GraphBuilder('products');
    g.input('x', 'float32', ['n', 64]);
    for (const [index, name] of ['one', 'two', 'three'].entries()) {
      g.initializer(`${name}.weight`, noise([64, 64], 0.2, index + 1));
      g.node('MatMul', {
        name,
        inputs: [index === 0 ? 'x' : `r${index - 1}`, `${name}.weight`],
        outputs: [name],
      });
      g.node('Tanh', { name: `${name}.tanh`, inputs: [name], outputs: [`r${index}`] });
    }
    g.node('ReduceMean', { name: 'mean', inputs: ['r2'], outputs: ['y'] });
    g.output('y', 'float32', null);
    const rows = freshPath('.npz');
    writeNpz(rows, new Map([['x', noise([8, 64], 1, 3)]]));
    const products = await written(g);
    const result = await advise(
      request({ model: products, data: [rows], precision: 'int4', budget: { kind: 'sqnr', db: 5 } }),
    );
    expect(result.samples).toMatchObject({ calibration: 6, heldOut: 2 });
    expect(chosenOf(result).weightsShare).toBeGreaterThan(0);
  });
});

describe('a list that the model sorts', () => {
  it('is judged by what goes into the choice', async () => {
    const g = network();
    g.initializer('flat', {
      dtype: 'int64',
      shape: [2],
      bytes: new Uint8Array(BigInt64Array.of(-1n, 16n).buffer),
    });
    g.node('Reshape', { name: 'reshape', inputs: ['pooled', 'flat'], outputs: ['scores'] });
    g.initializer('k', { dtype: 'int64', shape: [1], bytes: new Uint8Array(BigInt64Array.of(4n).buffer) });
    g.node('TopK', { name: 'top', inputs: ['scores', 'k'], outputs: ['values', 'indices'] });
    g.output('values', 'float32', ['n', 4]);
    const sorted = await advise(request({ model: await written(g) }));
    expect(sorted.judged).toEqual(['pooled', 'scores']);
  });
});

describe('what was tried', () => {
  it('is not tried again, for another budget either', async () => {
    const output = freshPath('/advice');
    const first = await advise(request({ output }));
    expect(first.tried).toBe(first.choices.length);
    const again = await advise(request({ output }));
    expect(again.tried).toBe(0);
    expect({ ...again, tried: 0, totalMs: 0, startedAt: '' }).toEqual({
      ...first,
      tried: 0,
      totalMs: 0,
      startedAt: '',
    });
    const strict = await advise(request({ output, budget: { kind: 'sqnr', db: 25 } }));
    expect(strict.tried).toBeLessThanOrEqual(4);
    expect((await advise(request({ output, method: 'mse' }))).tried).toBeGreaterThan(4);
  });

  it('counts for a run that goes on after it was stopped', async () => {
    const output = freshPath('/advice');
    const controller = new AbortController();
    const stopping: AdviseContext = {
      signal: controller.signal,
      emit: (event) => {
        if (event.type === 'progress' && event.phase === 'advise' && event.done === 3) controller.abort();
      },
    };
    expect(await codeOf({ output }, stopping)).toBe('TF_CANCELLED');
    const kept = JSON.parse(readFileSync(join(output, 'choices.json'), 'utf8')) as { trials: unknown[] };
    expect(kept.trials.length).toBeGreaterThan(1);
    const ranges = readFileSync(join(output, 'calibration.json'), 'utf8');
    leftByKilledRun(output);
    const result = await advise(request({ output }));
    expect(readdirSync(output).filter((name) => name.endsWith('.unpublished'))).toEqual([]);
    expect(result.tried).toBe(result.choices.length - kept.trials.length);
    expect(readFileSync(join(output, 'calibration.json'), 'utf8')).toBe(ranges);
  });
});

describe('the metric of a task', () => {
  /** The share of samples whose largest channel is FP32's, as a task of its own data would count it. */
  async function scorer(): Promise<{ readonly scorer: Scorer; readonly counts: { scored: number } }> {
    const counts = { scored: 0 };
    const inputs = Array.from({ length: 24 }, (_, at) => noise([1, 16, 8, 8], 1, 100 + at));
    const topOf = async (path: string) => {
      await using session = await openSession(path, { threads: 1 });
      const tops: number[] = [];
      for (const input of inputs) {
        const values = numbersOf((await session.run(new Map([['x', input]]))).get('pooled')!);
        tops.push(values.indexOf(Math.max(...values)));
      }
      return tops;
    };
    const truth = await topOf(model);
    const scorer: Scorer = {
      task: 'top',
      name: 'top1',
      unit: 'share',
      higherIsBetter: true,
      digest: async () => 'data',
      score: async (path) => {
        counts.scored++;
        const tops = await topOf(path);
        return tops.filter((top, at) => top === truth[at]).length / tops.length;
      },
    };
    return { scorer, counts };
  }

  it('is of FP32, of every choice, and decides where it is the budget', async () => {
    const { scorer: judge, counts } = await scorer();
    const output = freshPath('/advice');
    const result = await advise(request({ output, budget: { kind: 'metric', drop: 0.9 } }), {
      scorer: judge,
    });
    expect(result.task).toEqual({ id: 'top', metric: expect.objectContaining({ name: 'top1', value: 1 }) });
    expect(counts.scored).toBe(result.choices.filter(({ metric }) => metric !== null).length);
    expect(result.units.every(({ alone: { metric } }) => metric !== null)).toBe(true);
    expect(quantized(result)).toHaveLength(4);
    expect(result.drop?.metric).toBeCloseTo(1 - chosenOf(result).metric!);
    const strict = await advise(request({ output, budget: { kind: 'metric', drop: 0 } }), { scorer: judge });
    expect(chosenOf(strict).metric).toBe(1);
  });

  it('is asked of a task that is there', async () => {
    expect(await codeOf({ budget: { kind: 'metric', drop: 0.01 } })).toBe('TF_USAGE');
  });
});

describe('latency', () => {
  it('undoes what is slower, and writes the model without it', async () => {
    const built: string[] = [];
    const timed = async (path: string) => {
      const names = openModel(path).proto.graph!.initializer.map(({ name }) => name);
      const isLow = (name: string) => names.includes(`${name}.weight_quantized`);
      built.push(path);
      const layers = ['first', 'second', 'third', 'fourth'].map((name) => ({
        ...{ index: null, name, type: null, precision: null, tactic: null, share: 0.25 },
        onnxNodes: [name],
        ms: isLow(name) ? (name === 'second' ? 3 : 1) : 2,
      }));
      const totalMs = layers.reduce((sum, { ms }) => sum + ms, 0);
      return { medianMs: totalMs, layers: { runs: 1, totalMs, layers } };
    };
    const result = await advise(request({ budget: { kind: 'sqnr', db: 1 } }), { timeEngine: timed });
    expect(quantized(result)).toEqual(['first', 'third', 'fourth']);
    expect(result.latency).toMatchObject({ isSlower: false, undone: [{ unit: 'second' }] });
    expect(result.latency?.speedup).toBeCloseTo(8 / 5);
    expect(result.units[1]?.why).toMatch(/^Undone/);
    expect(built).toHaveLength(3);
    expect(renderReport({ kind: adviseReport, result }, 'html').content).toContain('median latency');
    const { cost, points } = decisionOf(result);
    expect(cost.unit).toBe('ms');
    expect(points.filter((point) => point.cost === null).every(({ missing }) => missing.length > 0)).toBe(
      true,
    );
    expect(points.find(({ name }) => name.startsWith('advised'))?.cost).not.toBeNull();
  });
});

describe('what cannot be advised on', () => {
  const cases: readonly (readonly [string, string, Partial<AdviseRequest>])[] = [
    ['no samples', 'TF_USAGE', { data: [] }],
    ['too few samples to hold one out', 'TF_CALIBRATION_INVALID', { data: [samples(3)] }],
    ['samples of other shapes', 'TF_SESSION_INPUT', { heldOut: [other()] }],
    ['a precision without codes', 'TF_USAGE', { precision: 'fp16' }],
    ['a budget that even no codes go beyond', 'TF_BUDGET_UNREACHABLE', { budget: { kind: 'sqnr', db: 200 } }],
    [
      'a model with nothing to quantize',
      'TF_NOT_QUANTIZABLE',
      { conversion: { keepOps: new Set(['Conv']) } },
    ],
  ];
  it.each(cases)('%s is %s', async (_, code, more) => {
    expect(await codeOf(more)).toBe(code);
  });

  it('a model that is quantized already', async () => {
    expect(await codeOf({ model: without.output })).toBe('TF_NOT_QUANTIZABLE');
  });

  /** The network with one more node for each step, of which the last makes y. */
  async function ending(...steps: readonly (readonly [op: string, inputs: readonly string[]])[]) {
    const g = network();
    for (const [index, [op, inputs]] of steps.entries())
      g.node(op, { name: op, inputs, outputs: [index === steps.length - 1 ? 'y' : op] });
    g.output('y', 'float32', ['n', 16, 1, 1]);
    return written(g);
  }

  it('a model that computes NaN of a sample', async () => {
    const rows = noise([3, 16, 8, 8], 1, 9);
    const values = Float32Array.from(numbersOf(rows)).fill(-1, 1024, 2048);
    const heldOut = freshPath('.npz');
    writeNpz(heldOut, new Map([['x', { ...rows, bytes: new Uint8Array(values.buffer) }]]));
    const roots = await ending(
      ['GlobalMaxPool', ['x']],
      ['Sqrt', ['GlobalMaxPool']],
      ['Add', ['pooled', 'Sqrt']],
    );
    expect(await advise(request({ model: roots, heldOut: [heldOut] })).catch((error) => error)).toMatchObject(
      {
        code: 'TF_CALIBRATION_INVALID',
        details: { tensor: 'y', sample: 1 },
      },
    );
  });

  it('a model that draws random numbers', async () => {
    const drawing = await ending(['RandomUniformLike', ['pooled']], ['Add', ['pooled', 'RandomUniformLike']]);
    const error = await advise(request({ model: drawing })).catch((error) => error);
    expect(error).toMatchObject({ code: 'TF_BISECT_REFERENCE', details: { tensor: 'y' } });
    expect(error.message).toContain('RandomUniformLike');
  });

  function other() {
    const path = freshPath('.npz');
    writeNpz(path, new Map([['x', noise([4, 3, 8, 8], 1, 2)]]));
    return path;
  }
});

it('is a verb that writes the result, a page and the model', async () => {
  const output = freshPath('/advice');
  const line = [
    'convert',
    'advise',
    model,
    '--calibration',
    data,
    '--budget',
    '20dB',
    '-o',
    output,
    '--json',
  ];
  const { exitCode, json } = await trtforge(line);
  expect(exitCode).toBe(0);
  const { ok: _, exitCode: __, command: ___, ...result } = json<Record<string, unknown>>();
  expect(adviceSchema.parse(JSON.parse(readFileSync(join(output, 'advice.json'), 'utf8')))).toEqual(result);
  const page = readFileSync(join(output, 'report.html'), 'utf8');
  expect(page).toContain('<svg class="chart"');
  for (const name of ['first', 'third']) expect(page).toContain(name);
  writeFileSync(join(output, 'choices.json'), '{');
  expect(
    (await trtforge(['convert', 'advise', model, '--calibration', data, '--budget', '20', '-o', output]))
      .exitCode,
  ).toBe(2);
  expect((await trtforge(['report', output, '--json'])).exitCode).toBe(0);
});

/** Two convolutions; the first has small weights beside one of 300 in each channel, which meets zeros: in 8 bits the small ones are gone. */
function steep(): GraphBuilder {
  const g = new GraphBuilder('steep');
  g.input('x', 'float32', ['n', 16, 8, 8]);
  g.initializer('mask', floats([1, 16, 1, 1], [0, ...Array(15).fill(1)]));
  g.node('Mul', { name: 'masked', inputs: ['x', 'mask'], outputs: ['m'] });
  const weight = noise([16, 16, 1, 1], 0.15, 3);
  const values = Float32Array.from(numbersOf(weight));
  for (let channel = 0; channel < 16; channel++) values[16 * channel] = 300;
  g.initializer('w', { ...weight, bytes: new Uint8Array(values.buffer) });
  g.node('Conv', { name: 'coarse', inputs: ['m', 'w'], outputs: ['c'] });
  g.initializer('v', noise([16, 16, 1, 1], 0.15, 4));
  g.node('Conv', { name: 'fine', inputs: ['c', 'v'], outputs: ['y'] });
  g.output('y', 'float32', ['n', 16, 8, 8]);
  return g;
}

describe('after a quantized model failed', () => {
  it('is the next step, with the samples that judged or made the ranges, and it runs', async () => {
    const reference = await written(steep());
    const candidate = freshPath();
    await trtforge([
      ...['convert', reference, '--precision', 'int8', '--calibration', data],
      '-o',
      candidate,
    ]);
    const found = await trtforge([
      ...['verify', candidate, '--against', reference, '--inputs', data, '--threads', '1'],
    ]);
    expect(found.exitCode).toBe(1);
    const line = /^Next: (trtforge convert advise .*)$/m.exec(found.out)?.[1] ?? '';
    expect(line).toBe(
      `trtforge convert advise ${reference} --precision int8 --calibration ${data} --budget 30dB -o advice`,
    );
    const words = line.split(' ').slice(1, -1);
    const advised = await trtforge([...words, freshPath('/advice'), '--json']);
    expect(advised.exitCode).toBe(0);
    expect(quantized(advised.json<Advice>())).not.toContain('coarse');
    const drawn = await trtforge(['verify', candidate, '--against', reference, '--threads', '1', '--json']);
    // Ranges are made for real samples: on noise a failure shows nothing.
    expect(drawn.json<VerifyResult>()).toMatchObject({ outcome: 'inconclusive' });
    expect(drawn.json<VerifyResult>().reasons.join()).toContain('--inputs');
    const run = freshPath('/run');
    const wish = [
      ...['forge', reference, '--precision', 'int8', '--calibration', data, '--calibration-method', 'max'],
      ...['--skip', 'build,bench', '--run-root', run],
    ];
    const forged = await trtforge(wish);
    expect(forged.exitCode).toBe(1);
    // The same search, within the run.
    const next = `trtforge ${wish.join(' ')} --heal`;
    expect(forged.out).toContain(`Next: ${next}\n`);
    expect(readFileSync(join(run, 'report.html'), 'utf8')).toContain(next);
    const report = JSON.parse(readFileSync(join(run, 'report.json'), 'utf8'));
    expect(report.verification.next.bisect).toBe(
      line.replace(' --budget', ' --calibration-method max --budget'),
    );
  });
});
