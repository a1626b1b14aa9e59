import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { transformerEncoder } from '../../../../examples/models/transformer-encoder.js';
import { writeNetwork } from '../../../../examples/models/write-network.js';
import { runFile } from '../../../../src/engines/run/run-file.js';
import { onnxRuntimeCpu } from '../../../../src/engines/runtime/onnxruntime/back-ends.js';
import { createPending } from '../../../../src/engines/store/pending.js';
import { TrtforgeError } from '../../../../src/errors.js';
import type { WorkEvent } from '../../../../src/events.js';
import { attribute, GraphBuilder, openModel } from '../../../../src/formats/onnx/index.js';
import type { ConvertOptions } from '../../../../src/formats/precision/convert.js';
import { writeNpz } from '../../../../src/formats/tensor/npz.js';
import { bisectModel } from '../../../../src/products/study/bisect/bisect.js';
import type { BisectRequest } from '../../../../src/products/study/bisect/options.js';
import { type BisectResult, bisectResultSchema } from '../../../../src/products/study/bisect/result.js';
import { compareOutputs } from '../../../../src/quality/verify/compare.js';
import { verifyModel } from '../../../../src/quality/verify/verify.js';
import { floats, modelFile } from '../../../engines/runtime/onnxruntime/models.js';
import { converted, freshPath, noise } from '../../../formats/precision/judge.js';
import { leftByKilledRun } from '../../../support/killed-run.js';
import { isAlive } from '../../../support/processes.js';
import { trtforge } from '../../../support/trtforge.js';
import { plantFaults } from '../planted.js';

/** An encoder with seeded weights. */
async function writeEncoder(layers: number): Promise<string> {
  const path = freshPath();
  const sizes = { layers, width: 16, heads: 2, vocabulary: 50, positions: 32 };
  await writeNetwork(path, (network) => transformerEncoder(network, sizes), { seed: 3, external: false });
  return path;
}
const encoder = await writeEncoder(3);
const shapes = new Map([
  ['input_ids', [1, 8]],
  ['attention_mask', [1, 8]],
]);
const settings = { samples: 1, threads: 1, shapes };

const bisected = (reference: string, candidate: string, more: Partial<BisectRequest> = {}) =>
  bisectModel({ reference, candidate, output: freshPath('/out'), ...settings, ...more });

/** The encoder with faults in the feed-forward parts of some layers, and its FP16 conversion. */
async function faulty(
  layers: readonly number[],
  fault: 'overflow' | 'rounding' = 'overflow',
  options: Partial<ConvertOptions> = {},
  model = encoder,
) {
  const reference = freshPath();
  const values = layers.map((layer) => `encoder.layer.${layer}.up.bias.out`);
  const names = await plantFaults(model, reference, values, fault);
  const { output: candidate } = await converted(reference, options);
  return { reference, candidate, names };
}

const names = ({ nodes }: { readonly nodes: readonly { readonly name: string }[] }) =>
  nodes.map(({ name }) => name).sort();

describe('the nodes that must stay FP32', () => {
  it('are found exactly for an overflow in one layer of an encoder', async () => {
    const { reference, candidate, names: planted } = await faulty([1]);
    const result = await bisected(reference, candidate);
    expect(bisectResultSchema.parse(result)).toEqual(result);
    expect(result).toMatchObject({ outcome: 'pass', cause: 'nodes', isMinimal: true });
    expect(names(result)).toEqual([...planted].sort());
    expect(result.nodes.every(({ overflows }) => overflows)).toBe(true);
    expect(result.candidates.length).toBeLessThanOrEqual(8);
    await expectStillFails(result.reduced, 3);
    const check = { reference, candidate: result.workaround ?? '', ...settings };
    expect((await verifyModel(check)).outcome).toBe('pass');
  });

  it('are those of every layer where every layer fails', async () => {
    const two = await writeEncoder(2);
    const { reference, candidate, names: planted } = await faulty([0, 1], 'overflow', {}, two);
    const result = await bisected(reference, candidate);
    expect(names(result)).toEqual([...planted].sort());
    expect(result).toMatchObject({ isMinimal: true, isConfirmed: null });
  });

  it('are not needed where the conversion passes, or the candidate', async () => {
    const { output: fine } = await converted(encoder);
    expect(await bisected(encoder, fine)).toMatchObject({
      outcome: 'pass',
      cause: 'none',
      candidates: [],
      workaround: null,
    });
    const reference = await overflowingLog();
    const { output: candidate } = await converted(reference, { convertOps: new Set(['Exp']) });
    const ranges = [{ name: null, low: 2, high: 4 }];
    const result = await bisected(reference, candidate, { ranges, shapes: new Map() });
    expect(result).toMatchObject({ outcome: 'pass', cause: 'conversion', nodes: [], tried: 1 });
  });

  it('have names of their own where the model has none', async () => {
    const reference = await twoProducts(false);
    const { output: candidate } = await converted(reference);
    const result = await bisected(reference, candidate, { shapes: new Map() });
    expect(result).toMatchObject({ cause: 'nodes', nodes: [{ name: 'Mul:y' }] });
    expect(result.convert).toContain('named.onnx');
  });
});

describe('a search', () => {
  it('for lost digits, which no range shows, goes on where it was stopped', async () => {
    const { reference, candidate, names: planted } = await faulty([0], 'rounding', {}, await writeEncoder(1));
    const output = freshPath('/out');
    const short = await bisected(reference, candidate, { output, budget: 5 });
    expect(short).toMatchObject({ outcome: 'pass', isMinimal: false, tried: 5 });
    const rest = await bisected(reference, candidate, { output });
    expect(rest).toMatchObject({ outcome: 'pass', isMinimal: true });
    expect(rest.nodes).toHaveLength(2);
    expect(names(rest)).toContain(planted[1]);
    expect(rest.candidates.length).toBeLessThanOrEqual(24);
    expect(rest.candidates.length).toBe(5 + rest.tried);
    const check = { reference, candidate: rest.workaround ?? '', ...settings };
    expect((await verifyModel(check)).outcome).toBe('pass');
    // Another question does not take these answers.
    expect((await bisected(reference, candidate, { output, seed: 5, budget: 2 })).tried).toBe(2);
  });

  it('begins anew where the file of what it tried is damaged', async () => {
    const reference = await twoProducts();
    const { output: candidate } = await converted(reference);
    const request = { output: freshPath('/out'), shapes: new Map() };
    const whole = await bisected(reference, candidate, request);
    const file = join(request.output, 'candidates.json');
    writeFileSync(file, readFileSync(file, 'utf8').slice(0, -40));
    expect((await bisected(reference, candidate, request)).tried).toBe(whole.tried);
    expect((await bisected(reference, candidate, request)).tried).toBe(0);
  });

  it('leaves no model of an earlier search beside its result, and removes no input', async () => {
    const reference = await twoProducts();
    const { output: candidate } = await converted(reference);
    const output = freshPath('/out');
    const { workaround, reduced } = await bisected(reference, candidate, { output, shapes: new Map() });
    const passing = workaround ?? '';
    const onOutput = bisected(reference, passing, { output, shapes: new Map() });
    await expect(onOutput).rejects.toMatchObject({ code: 'TF_OUTPUT_IS_INPUT' });
    const copy = freshPath();
    copyFileSync(passing, copy);
    expect(await bisected(reference, copy, { output, shapes: new Map() })).toMatchObject({ cause: 'none' });
    const files = [passing, reduced?.model, reduced?.inputs, reduced?.expected];
    expect(files.map((file) => existsSync(file ?? '/'))).toEqual([false, false, false, false]);
  });

  it('removes what killed runs left in its folder, and nothing of one that runs', async () => {
    const reference = await twoProducts();
    const { output: candidate } = await converted(reference);
    const output = freshPath('/out');
    const [dead, alive] = [leftByKilledRun(output), createPending(output).folder];
    await bisected(reference, candidate, { output, shapes: new Map() });
    expect([existsSync(dead), existsSync(alive)]).toEqual([false, true]);
    expect(readdirSync(output).filter((name) => name.endsWith('.unpublished'))).toHaveLength(1);
  });

  it('is judged by a command where one is passed', async () => {
    const reference = await twoProducts();
    const { output: candidate } = await converted(reference);
    const check = `${process.execPath} dist/main.js verify {} --against ${reference} --threads 1 --samples 1 -q`;
    const result = await bisected(reference, candidate, { check });
    expect(result).toMatchObject({ judge: 'check', backend: null, nodes: [{ name: 'second' }] });
    // It compares outputs of the whole model.
    expect(result.reduced).toBeNull();
    expect(result.reasons.at(-1)).toContain('No reduced model');
    const noPlace = bisected(reference, candidate, { check: 'true' });
    await expect(noPlace).rejects.toMatchObject({ code: 'TF_USAGE' });
  });

  it('fails what `verify` fails by samples that it goes on to draw', async () => {
    const withRow = (row: number) =>
      modelFile((graph) => {
        const table = Array.from({ length: 12 * 8 }, (_, at) => (Math.floor(at / 8) === row ? 2 : 1));
        graph.input('ids', 'int64', [1, 1]);
        graph.initializer(
          'table',
          floats(
            'float32',
            [12, 8],
            table.map((one, at) => one - (at % 8) / 20),
          ),
        );
        graph.initializer('k', floats('float32', [], [200]));
        graph.node('Gather', { name: 'row', inputs: ['table', 'ids'], outputs: ['r'] });
        graph.node('Mul', { name: 'up', inputs: ['r', 'k'], outputs: ['large'] });
        graph.node('Mul', { name: 'overflows', inputs: ['large', 'k'], outputs: ['y'] });
        graph.output('y', 'float32', [1, 1, 8]);
      });
    // One of the rows is drawn, though not at first.
    for (let row = 0; row < 12; row++) {
      const reference = await withRow(row);
      const { output: candidate } = await converted(reference);
      const request = { reference, candidate, threads: 1 };
      const first = await verifyModel({ ...request, samples: 3 });
      const verified = await verifyModel(request);
      if (first.outcome === 'fail' || verified.outcome !== 'fail') continue;
      const result = await bisectModel({ ...request, output: freshPath('/out') });
      expect(result).toMatchObject({ cause: 'nodes', outcome: 'pass', samples: verified.samples });
      expect(names(result)).toEqual(['overflows']);
      return;
    }
    throw new Error('No row was drawn late.');
  });

  it('shows each trial as it ends with what may follow, and states what a cancelled one kept', async () => {
    const { reference, candidate } = await faulty([0], 'rounding', {}, await writeEncoder(1));
    const [output, stopping] = [freshPath('/out'), new AbortController()];
    const ended: string[] = [];
    const emit = (event: WorkEvent) => {
      if (event.type === 'phase-start' && event.phase === 'trial 4') stopping.abort();
      if (event.type === 'phase-end') ended.push(`${event.phase} ${event.detail}`);
    };
    const run = bisectModel(
      { reference, candidate, output, ...settings },
      { emit, signal: stopping.signal, commandLine: 'trtforge bisect again' },
    );
    await expect(run).rejects.toMatchObject({
      code: 'TF_CANCELLED',
      message: expect.stringContaining(
        `3 trials of the search are kept in ${join(output, 'candidates.json')}`,
      ),
      remedy: 'To go on: trtforge bisect again',
    });
    expect(ended.map((line) => line.split(';')[0])).toEqual([
      'trial 1 FAIL: the conversion as it is',
      expect.stringMatching(/^trial 2 pass: all \d+ nodes in FP32$/),
      expect.stringMatching(/^trial 3 /),
    ]);
    expect(ended[1]).toMatch(/at most 38 more, \d/);
    const { tried, candidates } = await bisectModel({ reference, candidate, output, ...settings });
    expect(candidates.length).toBe(tried + 3);
  });

  it('ends with its check where it is cancelled, and keeps nothing of it', async () => {
    const reference = await twoProducts();
    const { output: candidate } = await converted(reference);
    const [output, script, started] = [freshPath('/out'), freshPath('.sh'), freshPath('.pids')];
    // The candidate fails and the conversion as it is too; the next check hangs.
    writeFileSync(script, `echo $$ >> ${started}\n[ $(wc -l < ${started}) = 3 ] && sleep 600\nexit 1\n`);
    const stopping = new AbortController();
    const run = bisectModel(
      { reference, candidate, output, check: `sh ${script} {}`, ...settings, shapes: new Map() },
      { signal: stopping.signal },
    );
    const pids = () => (existsSync(started) ? readFileSync(started, 'utf8').trim().split('\n') : []);
    await vi.waitUntil(() => pids().length === 3, { timeout: 240_000 });
    stopping.abort();
    await expect(run).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    await expect.poll(() => isAlive(Number(pids()[2]))).toBe(false);
    const { trials } = JSON.parse(readFileSync(join(output, 'candidates.json'), 'utf8'));
    expect(trials).toHaveLength(1);
  });

  it('keeps nothing of a candidate whose child a cancellation ended', async () => {
    const reference = await twoProducts();
    const { output: candidate } = await converted(reference);
    const output = freshPath('/out');
    const stopping = new AbortController();
    const dying: typeof onnxRuntimeCpu = {
      ...onnxRuntimeCpu,
      open: (path, ...rest) => {
        if (!path.endsWith('candidate.onnx')) return onnxRuntimeCpu.open(path, ...rest);
        stopping.abort();
        throw new TrtforgeError('TF_CHILD_DIED', 'The process running a model ended with exit code 1.');
      },
    };
    const run = bisectModel(
      { reference, candidate, output, ...settings, shapes: new Map() },
      { signal: stopping.signal, backEnds: [dying] },
    );
    await expect(run).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    expect(existsSync(join(output, 'candidates.json'))).toBe(false);
  });

  it('names no cause where the model with every node in FP32 could not be judged', async () => {
    const reference = await twoProducts();
    const { output: candidate } = await converted(reference);
    const [script, ran] = [freshPath('.sh'), freshPath('.ran')];
    // The candidate, the conversion as it is, then all nodes in FP32.
    writeFileSync(script, `echo >> ${ran}\n[ $(wc -l < ${ran}) = 3 ] && exit 75\nexit 1\n`);
    const result = await bisected(reference, candidate, { check: `sh ${script} {}`, shapes: new Map() });
    expect(result).toMatchObject({ outcome: 'inconclusive', cause: 'unknown', isMinimal: false });
    expect(result.candidates.map(({ outcome }) => outcome)).toEqual(['fail', 'unresolved']);
    expect(result.headline).not.toContain('none of them is the cause');
  });

  it('takes no answer of a check that was edited since', async () => {
    const reference = await twoProducts();
    const { output: candidate } = await converted(reference);
    const [script, output] = [freshPath('.sh'), freshPath('/out')];
    const run = () =>
      bisected(reference, candidate, { output, check: `sh ${script} {}`, shapes: new Map(), budget: 2 });
    writeFileSync(script, 'exit 1\n');
    expect((await run()).tried).toBe(2);
    expect((await run()).tried).toBe(0);
    writeFileSync(script, 'exit 1 # corrected\n');
    expect((await run()).tried).toBe(2);
  });

  /** A check that takes any model: no output is infinite or NaN where the inputs are seeded. */
  const finite = (path: string) => {
    const script = freshPath('.sh');
    const run = `${process.execPath} dist/main.js run "$1" --inputs random --seed 1 --json -q`;
    writeFileSync(script, `${run} > ${path} || exit 2\n! grep -qE '"(infinite|nan)": *[1-9]' ${path}\n`);
    return `sh ${script} {}`;
  };

  it('by a command that takes any model writes the part that fails it', async () => {
    const reference = await twoProducts();
    const { output: candidate } = await converted(reference);
    const check = finite(freshPath('.json'));
    const result = await bisected(reference, candidate, { check, shapes: new Map() });
    expect(names(result)).toEqual(['second']);
    // Alone, on random inputs, the second product stays in range.
    const made = openModel(result.reduced?.model ?? '');
    made.close();
    const operators = made.proto.graph?.node.map(({ opType }) => opType).filter((op) => op !== 'Cast');
    expect(operators).toEqual(['Mul', 'Mul']);
    expect(existsSync(result.reduced?.inputs ?? '')).toBe(true);
    const [command = ''] = result.reduced?.commands ?? [];
    expect(spawnSync('/bin/sh', ['-c', command]).status).toBe(1);
  });

  /** A check that takes any model of so many nodes: "middle" is not in FP16. */
  const middleInFp32 = (least: number) => {
    const script = freshPath('.mjs');
    const built = (path: string) => JSON.stringify(new URL(`../../../../dist/${path}`, import.meta.url));
    writeFileSync(
      script,
      `import { inferDtypes } from ${built('formats/onnx/dtype-inference.js')};
       import { openModel } from ${built('formats/onnx/model.js')};
       const { proto } = openModel(process.argv[2]);
       const nodes = proto.graph.node.filter(({ opType }) => opType !== 'Cast');
       const isWrong = ({ name, input }) =>
         name === 'middle' && inferDtypes(proto).graph.types.get(input[0]) === 'float16';
       process.exit(nodes.length < ${least} || nodes.some(isWrong) ? 1 : 0);`,
    );
    return `${process.execPath} ${script} {}`;
  };

  it.each([1, 2])('that needs %i nodes writes a part amid others in FP16', async (count) => {
    const reference = await threeProducts();
    const { output: candidate } = await converted(reference);
    const result = await bisected(reference, candidate, { check: middleInFp32(count), shapes: new Map() });
    expect(names(result)).toEqual(['middle']);
    const made = openModel(result.reduced?.model ?? '');
    made.close();
    const operators = made.proto.graph?.node.map(({ opType }) => opType).filter((op) => op !== 'Cast');
    expect(operators).toHaveLength(count === 1 ? 1 : 3);
  });
});

it('a fault inside of a body is reduced to the node that has the body', async () => {
  const reference = await productsInBody();
  const { output: candidate } = await converted(reference);
  const result = await bisected(reference, candidate, { shapes: new Map() });
  expect(names(result)).toEqual(['down', 'up']);
  await expectStillFails(result.reduced, 1);
});

it('the verb writes the result and its pages', async () => {
  const reference = await twoProducts();
  const { output: candidate } = await converted(reference);
  const folder = freshPath('/verb');
  const { exitCode, json } = await trtforge([
    ...['bisect', candidate, '--against', reference, '-o', folder, '--samples', '1', '--json'],
  ]);
  expect(exitCode).toBe(0);
  expect(json()).toMatchObject({ schema: 'trtforge.bisect/1', nodes: [{ name: 'second' }] });
  const written = JSON.parse(readFileSync(join(folder, 'bisect.json'), 'utf8'));
  expect(bisectResultSchema.parse(written).repeat).toContain('trtforge bisect');
  const page = readFileSync(join(folder, 'report.md'), 'utf8');
  for (const text of ['second', written.repeat, written.workaround]) expect(page).toContain(text);
  expect(readFileSync(join(folder, 'report.html'), 'utf8')).toContain('second');
});

it('recorded inputs judge in place of drawn ones', async () => {
  const reference = await twoProducts();
  const { output: candidate } = await converted(reference);
  const recording = freshPath('.npz');
  writeNpz(recording, new Map([['x', noise([4, 8], 1, 4)]]));
  const result = await bisected(reference, candidate, {
    data: { files: [recording] },
    shapes: new Map(),
  });
  expect(result).toMatchObject({ judge: 'model', samples: 1, nodes: [{ name: 'second' }] });
});

it('a reference that draws random numbers cannot judge: its output is named', async () => {
  const reference = await modelFile((graph) => {
    graph.input('x', 'float32', [4, 8]);
    graph.node('RandomUniformLike', {
      inputs: ['x'],
      outputs: ['noise'],
      attributes: { high: attribute.float(5) },
    });
    graph.node('Add', { inputs: ['x', 'noise'], outputs: ['y'] });
    graph.output('y', 'float32', [4, 8]);
  });
  const { output: candidate } = await converted(reference);
  await expect(bisected(reference, candidate, { shapes: new Map() })).rejects.toMatchObject({
    code: 'TF_BISECT_REFERENCE',
    details: { tensor: 'y' },
  });
});

it('of a quantized candidate must be known how it was quantized', async () => {
  const { output: candidate } = await converted(encoder, { precision: 'int4' });
  await expect(bisected(encoder, candidate)).rejects.toMatchObject({ code: 'TF_USAGE' });
  expect(await bisected(encoder, candidate, { precision: 'int4' })).toMatchObject({ outcome: 'pass' });
  // A conversion to FP16 has none of its pairs.
  const plain = bisected(encoder, candidate, { precision: 'fp16' });
  await expect(plain).rejects.toMatchObject({ code: 'TF_USAGE' });
});

it('a candidate in FP32 has no node to keep', async () => {
  await expect(bisected(encoder, encoder)).rejects.toMatchObject({ code: 'TF_USAGE' });
});

/** Runs the reduced model on its inputs, and compares it with what FP32 computes. */
async function expectStillFails(reduced: BisectResult['reduced'], most: number) {
  if (reduced === null) throw new Error('Nothing was reduced.');
  expect(reduced.nodes).toBeLessThanOrEqual(most);
  const candidate = freshPath('.npz');
  const sources = [{ kind: 'archive', path: reduced.inputs }] as const;
  await runFile({ file: reduced.model, sources, output: candidate });
  const compared = await compareOutputs({
    candidate,
    reference: reduced.expected,
    precision: 'fp16',
    allowDtypeDifference: true,
  });
  expect(compared.verdicts.numeric).toBe('fail');
}

const overflowingLog = () =>
  modelFile((graph) => {
    graph.input('x', 'float32', [4, 8]);
    graph.node('Exp', { inputs: ['x'], outputs: ['e'] });
    graph.node('Exp', { inputs: ['e'], outputs: ['f'] });
    graph.node('Log', { inputs: ['f'], outputs: ['g'] });
    graph.node('Log', { inputs: ['g'], outputs: ['y'] });
    graph.output('y', 'float32', [4, 8]);
  });

const squareWeights = floats(
  'float32',
  [8, 8],
  Array.from({ length: 64 }, (_, at) => Math.sin(at)),
);

/** The body of its If leaves the range of FP16. */
const productsInBody = () => {
  const body = new GraphBuilder('body');
  body.node('Mul', { name: 'up', inputs: ['a', 'k'], outputs: ['large'] });
  body.node('Div', { name: 'down', inputs: ['large', 'k'], outputs: ['b'] });
  body.output('b', 'float32', null);
  return modelFile((graph) => {
    graph.input('x', 'float32', [4, 8]);
    graph.initializer('w', squareWeights);
    graph.initializer('k', floats('float32', [], [60000]));
    graph.initializer('yes', { dtype: 'bool', shape: [], bytes: Uint8Array.of(1) });
    graph.node('MatMul', { name: 'first', inputs: ['x', 'w'], outputs: ['a'] });
    graph.node('If', {
      name: 'choice',
      inputs: ['yes'],
      outputs: ['c'],
      attributes: { then_branch: attribute.body(body), else_branch: attribute.body(body) },
    });
    graph.node('MatMul', { name: 'last', inputs: ['c', 'w'], outputs: ['y'] });
    graph.output('y', 'float32', [4, 8]);
  });
};

const threeProducts = () =>
  modelFile((graph) => {
    graph.input('x', 'float32', [4, 8]);
    graph.initializer('w', squareWeights);
    graph.node('MatMul', { name: 'first', inputs: ['x', 'w'], outputs: ['a'] });
    graph.node('MatMul', { name: 'middle', inputs: ['a', 'w'], outputs: ['b'] });
    graph.node('MatMul', { name: 'last', inputs: ['b', 'w'], outputs: ['y'] });
    graph.output('y', 'float32', [4, 8]);
  });

/** The second product is beyond FP16. */
const twoProducts = (isNamed = true) =>
  modelFile((graph) => {
    const name = (text: string) => (isNamed ? { name: text } : {});
    graph.input('x', 'float32', [4, 8]);
    graph.initializer('k', floats('float32', [], [600]));
    graph.node('Mul', { ...name('first'), inputs: ['x', 'k'], outputs: ['large'] });
    graph.node('Mul', { ...name('second'), inputs: ['large', 'k'], outputs: ['y'] });
    graph.output('y', 'float32', [4, 8]);
  });
