import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { readPassport } from '../../../../src/engines/identity/passport.js';
import { onnxRuntimeCpu } from '../../../../src/engines/runtime/onnxruntime/back-ends.js';
import { ignoreEvents } from '../../../../src/events.js';
import { openModel } from '../../../../src/formats/onnx/model.js';
import type { ValueInfoProto } from '../../../../src/formats/onnx/onnx_pb.js';
import { valueFacts } from '../../../../src/formats/onnx/values.js';
import { convertModel } from '../../../../src/formats/precision/convert.js';
import { bisectModel } from '../../../../src/products/study/bisect/bisect.js';
import type { BisectRequest } from '../../../../src/products/study/bisect/options.js';
import { type BisectResult, bisectResultSchema } from '../../../../src/products/study/bisect/result.js';
import { compareLayers } from '../../../../src/products/study/layers/compare-layers.js';
import { layerComparisonSchema } from '../../../../src/products/study/layers/result.js';
import { buildOrLoad } from '../../../../src/quality/known-answer/build-or-load.js';
import { verifyModel } from '../../../../src/quality/verify/verify.js';
import { floats, modelFile } from '../../../engines/runtime/onnxruntime/models.js';
import { type Fault, faultyEngines, spans } from '../../../fakes/faulty-engines.js';
import { freshPath } from '../../../formats/precision/judge.js';
import { describeWith } from '../../../support/needs.js';
import { trtforge } from '../../../support/trtforge.js';

const target = 'tensorrt-rtx:sm_89';
const width = 64;

/** Two products with pointwise steps between. */
const network = () =>
  modelFile((graph) => {
    const weights = (seed: number) =>
      Array.from({ length: width * width }, (_, at) => Math.sin(at * seed) / Math.sqrt(width));
    graph.input('x', 'float32', ['batch', width]);
    graph.initializer('w1', floats('float32', [width, width], weights(1.1)));
    graph.initializer('w2', floats('float32', [width, width], weights(2.3)));
    graph.initializer('b', floats('float32', [width], weights(0.7).slice(0, width)));
    graph.node('MatMul', { name: 'first', inputs: ['x', 'w1'], outputs: ['a'] });
    graph.node('Add', { name: 'bias', inputs: ['a', 'b'], outputs: ['p'] });
    graph.node('Sigmoid', { name: 'gate', inputs: ['p'], outputs: ['s'] });
    graph.node('Mul', { name: 'swish', inputs: ['p', 's'], outputs: ['c'] });
    graph.node('MatMul', { name: 'second', inputs: ['c', 'w2'], outputs: ['y'] });
    graph.output('y', 'float32', ['batch', width]);
  });

const profile = `x:1x${width}/4x${width}/8x${width}`;
const shapes = new Map([['x', [4, width]]]);

async function engineOf(model: string) {
  const output = model.replace('.onnx', '.engine');
  return (await buildOrLoad({ model, target, profiles: [profile], output, store: false })).engine;
}

/** Searches with engines that run as their models do, save for a fault of the test. */
async function searched(request: Pick<BisectRequest, 'reference' | 'candidate'>, fault: Fault) {
  const back = faultyEngines(fault);
  const result = await bisectModel(
    { output: freshPath('/out'), build: { store: false }, shapes, samples: 1, threads: 1, ...request },
    { backEnds: [back, onnxRuntimeCpu] },
  );
  expect(bisectResultSchema.parse(result)).toEqual(result);
  return result;
}

const tf32Fault: Fault = {
  passport: ({ identity }) => !identity.document.recipe.flags.includes('no-tf32'),
};

describeWith('toolchain', 'an engine that fails', () => {
  test('by TF32: the passing build and a single product that fails are handed out', async () => {
    const reference = await network();
    const result = await searched({ reference, candidate: await engineOf(reference) }, tf32Fault);
    expect(result).toMatchObject({ outcome: 'pass', cause: 'tf32', precision: 'fp32', builds: 2 });
    expect(result.build).toContain('flags=no-tf32');
    for (const { ms } of result.candidates) expect(ms.build).toBeGreaterThan(0);
    // Built again, the engine is the program that was judged first.
    expect(result.candidates[0]).toMatchObject({ outcome: 'fail', same: 0, ms: { run: null } });
    expect(result.reduced).toMatchObject({ nodes: 1 });
    expect(result.reduced?.commands[0]).toContain(`--target ${target}`);
  });

  test('by a fusion: one output more breaks it', async () => {
    const reference = await network();
    const candidate = await engineOf(reference);
    const result = await searched({ reference, candidate }, { kernel: spans('bias', 'swish') });
    expect(result).toMatchObject({ outcome: 'pass', cause: 'fusion', isMinimal: true });
    expect(result.fusion?.nodes).toEqual(expect.arrayContaining(['bias', 'swish']));
    expect(result.fusion?.outputs).toEqual(['a']);
    expect(outputsOf(result.workaround)).toEqual([
      { name: 'y', shape: ['batch', width] },
      { name: 'a', shape: ['batch', width] },
    ]);
    expectReduced(result, ['bias', 'swish']);
  });

  test('is judged by the tolerances of its types, also where its model was typed before the build', async () => {
    const reference = await network();
    const typed = reference.replace('.onnx', '.typed.onnx');
    await convertModel(reference, typed, { precision: 'fp16', ioTypes: 'keep' }, { emit: ignoreEvents });
    const candidate = await engineOf(typed);
    expect(readPassport(candidate).model.precisions).toEqual(['fp16']);
    const request = { reference, candidate, shapes, samples: 1, threads: 1 };
    const verified = verifyModel(request, { backEnds: [faultyEngines({}), onnxRuntimeCpu] });
    expect(await verified).toMatchObject({ precision: 'fp16' });
  });

  test('shows its layers, save for those inside of kernels', async () => {
    const reference = await network();
    const candidate = await engineOf(reference);
    const compared = (fault: Fault) =>
      compareLayers(
        { reference, candidate, shapes, samples: 1, threads: 1 },
        { backEnds: [faultyEngines(fault), onnxRuntimeCpu] },
      );
    const right = await compared({});
    expect(layerComparisonSchema.parse(right)).toEqual(right);
    expect(right).toMatchObject({ outcome: 'pass', engine: { builds: 1, outputsFail: false } });
    // One kernel has the first product, its bias and the gate: only what it stores is compared, so that it stays as it is.
    expect(right.tensors.map(({ name }) => name)).toEqual(['c', 'y']);
    expect(right.engine?.inside).toBe(3);
    const wrong = await compared({ kernel: spans('bias', 'swish') });
    expect(wrong).toMatchObject({ outcome: 'fail', firstDivergence: 'c', engine: { outputsFail: true } });
  });

  test('is searched by a command, which gets engine and model; what was tried is not tried again', async () => {
    const reference = await network();
    const folder = freshPath('/check');
    const seen = join(dirname(reference), 'seen.txt');
    const script = reference.replace('.onnx', '.mjs');
    writeFileSync(
      script,
      `import { appendFileSync, existsSync, readFileSync } from 'node:fs';
       const [engine, model] = process.argv.slice(2);
       const { identity } = JSON.parse(readFileSync(engine + '.passport.json', 'utf8'));
       appendFileSync(${JSON.stringify(seen)}, (existsSync(model) ? model : 'none') + '\\n');
       process.exit(identity.document.recipe.flags.includes('no-tf32') ? 0 : 1);`,
    );
    const line = [
      ...['bisect', reference, '--against', reference, '--target', target, '--profile', profile],
      ...['--check-command', `${process.execPath} ${script} {} {model}`, '-o', folder, '--json'],
    ];
    const environment = { ...process.env, TENSORRT_CACHE_DIR: freshPath('/store') };
    const first = await trtforge(line, environment);
    expect(first.exitCode).toBe(0);
    expect(first.json()).toMatchObject({ judge: 'check', cause: 'tf32', backend: null, builds: 2, tried: 2 });
    expect(readFileSync(seen, 'utf8').trim().split('\n')).not.toContain('none');
    // The command takes any engine: a part of the model fails it, and passes it without TF32.
    const { commands, nodes } = first.json<BisectResult>().reduced ?? { commands: [], nodes: 0 };
    expect(nodes).toBe(1);
    expect(commands).toEqual([
      expect.stringMatching(/^trtforge build .*reduced\.onnx .*reduced\.engine$/),
      expect.stringMatching(/mjs .*reduced\.engine .*reduced\.onnx$/),
    ]);
    for (const file of ['candidate.engine', 'workaround.onnx', 'reduced.onnx', 'report.html'])
      expect(existsSync(join(folder, file))).toBe(true);
    expect(readFileSync(join(folder, 'report.md'), 'utf8')).toContain('TF32');
    expect(readPassport(join(folder, 'candidate.engine')).identity.document.recipe.profiles).toHaveLength(1);
    const again = await trtforge(line, environment);
    expect(again.json()).toMatchObject({ cause: 'tf32', builds: 2, tried: 0 });
  });
});

test('options of a build without engines are rejected', async () => {
  const reference = await network();
  const { json } = await trtforge([
    ...['bisect', reference, '--against', reference, '--profile', profile, '-o', freshPath('/o'), '--json'],
  ]);
  expect(json().error?.code).toBe('TF_USAGE');
});

const declaredShape = (value: ValueInfoProto) => valueFacts(value).shape;

const outputsOf = (path: string | null) => {
  const model = openModel(path ?? '');
  model.close();
  return model.proto.graph?.output.map((value) => ({ name: value.name, shape: declaredShape(value) }));
};

function expectReduced({ reduced }: BisectResult, nodes: readonly string[]) {
  const model = openModel(reduced?.model ?? '');
  model.close();
  expect(model.proto.graph?.node.map(({ name }) => name)).toEqual(expect.arrayContaining([...nodes]));
  expect(reduced?.nodes).toBeLessThan(5);
  // ONNX's own checker takes no output without a rank.
  for (const { shape } of outputsOf(reduced?.model ?? null) ?? []) expect(shape).toEqual([null, null]);
  // It keeps the open dimension, and is built for the same sizes of it.
  const [input] = model.proto.graph?.input ?? [];
  expect(input && declaredShape(input)).toEqual(['d1_4_8', width]);
  expect(reduced?.commands[0]).toContain(`--profile ${input?.name}:1x${width}/4x${width}/8x${width}`);
}
