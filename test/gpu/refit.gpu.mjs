// Other weights for engines without a new build: engines that were built with --refit, FP32 and FP16, are refitted from models of another seed and compared with
// ONNX Runtime; what cannot be refitted is rejected; a session takes other weights between runs, with CUDA graphs and without. Prints the time of a refit as a share of
// the build's, and of trtexec's where TRTEXEC names it. One JSON line per check.
//
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/refit.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tensorFrom } from '../../dist/formats/tensor/tensor.js';
import { openEngineSession, openSession } from '../../dist/index.js';
import { initializer, loadedFacts, openChecks, programsIn, refused, value, writeModel } from './harness.mjs';

const { addon, toolchain, major, folder, check, skip, finish } = openChecks();
const { trtforge } = programsIn(folder);
const at = (name) => join(folder, name);
const FLOAT = 1;
const [KIND_INT, KIND_INTS] = [2, 7];

/** Numbers between -1 and 1, the same for the same seed. */
function drawing(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}
const weight = (draw, name, dims, low = -1, high = 1) => {
  const count = dims.reduce((product, size) => product * size, 1);
  const fan = dims.length > 1 ? Math.sqrt(count / dims[0]) : 1;
  const drawn = () => ((draw() + 1) / 2) * (high - low) + low;
  return initializer(
    name,
    FLOAT,
    dims,
    Float32Array.from({ length: count }, () => drawn() / fan),
  );
};
const ints = (name, list) => ({ name, type: KIND_INTS, ints: list.map(BigInt) });
const int = (name, number) => ({ name, type: KIND_INT, i: BigInt(number) });
const node = (opType, input, output, attribute = []) => ({
  opType,
  name: output[0],
  input,
  output,
  attribute,
});

/** Convolutions, a batch normalization whose weights the parser folds, a residual sum, a Gemm. */
function convnet(seed) {
  const draw = drawing(seed);
  const pads = [ints('kernel_shape', [3, 3]), ints('pads', [1, 1, 1, 1])];
  const channels = 32;
  return writeModel(folder, `convnet-${seed}`, {
    inputs: [value('x', FLOAT, ['n', 3, 32, 32])],
    outputs: [value('y', FLOAT, ['n', 10])],
    initializers: [
      weight(draw, 'stem', [channels, 3, 3, 3]),
      weight(draw, 'scale', [channels], 0.5, 1.5),
      weight(draw, 'shift', [channels]),
      weight(draw, 'mean', [channels]),
      weight(draw, 'variance', [channels], 0.5, 2),
      weight(draw, 'kernel', [channels, channels, 3, 3]),
      weight(draw, 'bias', [channels]),
      weight(draw, 'head', [10, channels]),
      weight(draw, 'head_bias', [10]),
    ],
    nodes: [
      node('Conv', ['x', 'stem'], ['stem_out'], pads),
      node('BatchNormalization', ['stem_out', 'scale', 'shift', 'mean', 'variance'], ['normal']),
      node('Relu', ['normal'], ['first']),
      node('Conv', ['first', 'kernel', 'bias'], ['second'], pads),
      node('Add', ['first', 'second'], ['sum']),
      node('Relu', ['sum'], ['active']),
      node('GlobalAveragePool', ['active'], ['pooled']),
      node('Flatten', ['pooled'], ['flat']),
      node('Gemm', ['flat', 'head', 'head_bias'], ['y'], [int('transB', 1)]),
    ],
  });
}

/** Matrix products around a softmax and a normalization. */
function products(seed) {
  const draw = drawing(seed);
  const [width, hidden] = [32, 48];
  return writeModel(folder, `products-${seed}`, {
    inputs: [value('x', FLOAT, ['n', 12, width])],
    outputs: [value('y', FLOAT, ['n', 12, 16])],
    initializers: [
      weight(draw, 'embed', [width, hidden]),
      weight(draw, 'scale', [hidden], 0.5, 1.5),
      weight(draw, 'shift', [hidden]),
      weight(draw, 'head', [hidden, 16]),
      weight(draw, 'head_bias', [16]),
    ],
    nodes: [
      node('MatMul', ['x', 'embed'], ['embedded']),
      node('LayerNormalization', ['embedded', 'scale', 'shift'], ['normal']),
      node('Relu', ['normal'], ['active']),
      node('MatMul', ['active', 'head'], ['product']),
      node('Add', ['product', 'head_bias'], ['y']),
    ],
  });
}

/** A matrix product, an LSTM, a matrix product. */
function recurrent(seed) {
  const draw = drawing(seed);
  const [width, hidden, steps] = [32, 48, 12];
  const hiddenSize = int('hidden_size', hidden);
  return writeModel(folder, `recurrent-${seed}`, {
    inputs: [value('x', FLOAT, [steps, 'n', width])],
    outputs: [value('y', FLOAT, [1, 'n', 16])],
    initializers: [
      weight(draw, 'embed', [width, width]),
      weight(draw, 'W', [1, 4 * hidden, width], -20, 20),
      weight(draw, 'R', [1, 4 * hidden, hidden], -20, 20),
      weight(draw, 'B', [1, 8 * hidden]),
      weight(draw, 'head', [hidden, 16]),
      weight(draw, 'head_bias', [16]),
    ],
    nodes: [
      node('MatMul', ['x', 'embed'], ['embedded']),
      node('LSTM', ['embedded', 'W', 'R', 'B'], ['all', 'last'], [hiddenSize]),
      node('MatMul', ['last', 'head'], ['product']),
      node('Add', ['product', 'head_bias'], ['y']),
    ],
  });
}

const passportOf = (engine) => JSON.parse(readFileSync(`${engine}.passport.json`, 'utf8'));
const build = (model, engine, ...more) =>
  trtforge(['build', model, '--target', 'tensorrt', '--dim', 'n=1/4/8', '--no-cache', '-o', engine, ...more]);
const refit = (engine, model, output, codes = [0]) =>
  trtforge(['engine', 'refit', engine, model, '-o', output], { codes });
/** Exit 0: the engine computes what the model does on ONNX Runtime; 1: something else. */
const verify = (engine, model, codes) => trtforge(['verify', engine, '--against', model], { codes });

if (major < 10) {
  await check('the parser of this version refits no engines, which the error states', () => {
    const model = convnet(1);
    build(model, at('old.engine'), '--refit', '--weakly-typed');
    const { error } = refit(at('old.engine'), convnet(2), at('never.engine'), [2]);
    assert.equal(error.code, 'TF_OPTION_UNSUPPORTED');
    return { message: error.message };
  });
  finish();
}

for (const [name, make] of Object.entries({ convnet, products })) {
  const [model, retrained] = [make(1), make(2)];
  for (const [way, more] of Object.entries({ fp32: [], fp16: ['--precision', 'fp16'] })) {
    const [engine, output] = [at(`${name}-${way}.engine`), at(`${name}-${way}-new.engine`)];
    await check(`${name} ${way}: an engine refitted from other weights gives what ONNX Runtime gives`, () => {
      build(model, engine, '--refit', ...more);
      const started = performance.now();
      const result = refit(engine, retrained, output);
      const wallMs = performance.now() - started;
      assert.equal(result.refittedFrom, passportOf(engine).identity.digest);
      assert.equal(result.unanswered, null);
      assert.equal(verify(engine, model, [0]).outcome, 'pass');
      assert.equal(verify(output, retrained, [0]).outcome, 'pass');
      assert.equal(verify(output, model, [1]).outcome, 'fail');
      assert.equal(trtforge(['engine', 'check', output]).outcome, 'pass');
      const [buildMs, refitMs] = [engine, output].map((file) => passportOf(file).built.ms);
      return { buildMs, refitMs, share: refitMs / buildMs, wallMs, warnings: result.warnings };
    });
    await check(`${name} ${way}: what was refitted states whether it takes other weights again`, async () => {
      const { refittable } = await loadedFacts(addon, toolchain, output);
      if (!refittable) return { refittable };
      refit(output, model, at('back.engine'));
      assert.equal(verify(at('back.engine'), model, [0]).outcome, 'pass');
      return { refittable };
    });
  }
}

await check('an LSTM, whose weights the parser does not replace, is rejected; the store builds it', () => {
  const engine = at('recurrent.engine');
  build(recurrent(1), engine, '--refit');
  const { error } = refit(engine, recurrent(2), at('never.engine'), [2]);
  assert.equal(error.code, 'TF_REFIT_FAILED', error.message);
  assert.ok(!existsSync(at('never.engine')));
  return { message: error.message.split('\n')[0] };
});

await check(
  'a plan without the flag, and models of another graph, are rejected, and nothing is written',
  () => {
    const [model, other] = [convnet(1), recurrent(1)];
    build(model, at('plain.engine'));
    const never = at('never.engine');
    const messages = [
      [refit(at('plain.engine'), convnet(2), never, [2]), 'TF_ENGINE_NOT_REFITTABLE'],
      [refit(at('convnet-fp32.engine'), other, never, [2]), 'TF_REFIT_MODEL_MISMATCH'],
    ].map(([{ error }, code]) => {
      assert.equal(error.code, code, error.message);
      assert.ok(!existsSync(never) && !existsSync(`${never}.passport.json`));
      return error.message;
    });
    return { messages };
  },
);

await check('the store refits an engine of the same graph in place of a build', () => {
  const kept = (model) =>
    trtforge([
      'build',
      model,
      '--target',
      'tensorrt',
      '--batch',
      '1/4/8',
      '--refit',
      '--cache-dir',
      at('store'),
    ]);
  const first = kept(convnet(1));
  const second = kept(convnet(3));
  assert.equal(second.refittedFrom, first.identity);
  assert.equal(verify(second.engine, convnet(3), [0]).outcome, 'pass');
  return { buildMs: first.buildMs, refitMs: second.buildMs, warnings: second.warnings };
});

await check('a stripped plan becomes a whole engine', () => {
  const stripped = at('stripped.engine');
  build(convnet(1), stripped, '--refit', '--builder-config', 'flags=strip-plan');
  refit(stripped, convnet(2), at('whole.engine'));
  assert.equal(verify(at('whole.engine'), convnet(2), [0]).outcome, 'pass');
  return { strippedBytes: passportOf(stripped).plan.bytes, bytes: passportOf(at('whole.engine')).plan.bytes };
});

const draw = drawing(7);
const shape = [4, 3, 32, 32];
const x = tensorFrom(
  'float32',
  shape,
  Float32Array.from({ length: shape.reduce((product, size) => product * size) }, draw),
);
const floats = (tensors) => {
  const { bytes } = tensors.get('y');
  return new Float32Array(bytes.slice().buffer);
};
async function expected(model) {
  const session = await openSession(model);
  try {
    return floats(await session.run({ x }));
  } finally {
    await session.close();
  }
}
const largest = (a, b = new Float32Array(a.length)) =>
  a.reduce((most, number, place) => Math.max(most, Math.abs(number - b[place])), 0);
const loading = { toolchain: process.env.TENSORRT_HOME };

for (const cudaGraph of ['never', 'always'])
  await check(`a session takes other weights between runs, CUDA graph ${cudaGraph}`, async () => {
    const models = [convnet(1), convnet(2)];
    const answers = await Promise.all(models.map(expected));
    const limit = 0.02 * largest(answers[0]);
    assert.ok(largest(...answers) > 5 * limit, 'the two models are too much alike');
    const session = await openEngineSession(at('convnet-fp32.engine'), { ...loading, cudaGraph });
    try {
      const call = await session.prepare({ x: shape });
      const errors = [];
      const refitMs = [];
      const judge = async (answer) => {
        for (let time = 0; time < 3; time++) {
          call.inputs.x.set(new Float32Array(x.bytes.slice().buffer));
          call.runSync();
          const ran = [floats(await session.run({ x })), Float32Array.from(call.outputs.y)];
          for (const found of ran) errors.push(largest(found, answer));
        }
      };
      await judge(answers[0]);
      for (const turn of [1, 0, 1]) {
        const started = performance.now();
        await session.refit(models[turn]);
        refitMs.push(performance.now() - started);
        await judge(answers[turn]);
      }
      assert.ok(Math.max(...errors) <= limit, `errors of ${Math.max(...errors)}, more than ${limit}`);
      assert.equal(call.cudaGraph, cudaGraph === 'always');
      const busy = session.run({ x });
      const { message } = await refused('TF_SESSION_BUSY', /under way/, session.refit(models[0]));
      await busy;
      await refused('TF_REFIT_MODEL_MISMATCH', /graph/, session.refit(recurrent(1)));
      return { largestError: Math.max(...errors), limit, refitMs, graph: call.cudaGraph, message };
    } finally {
      await session.close();
    }
  });

if (process.env.TRTEXEC === undefined) skip("a refit beside trtexec's build", 'TRTEXEC names no trtexec');
else
  await check("a refit beside trtexec's build of the same engine", () => {
    const shapes = (name, n) => `--${name}Shapes=x:${n}x3x32x32`;
    const started = performance.now();
    const { status, stdout } = spawnSync(
      process.env.TRTEXEC,
      [
        ...[`--onnx=${convnet(2)}`, '--refit', '--skipInference', `--saveEngine=${at('trtexec.plan')}`],
        ...[shapes('min', 1), shapes('opt', 4), shapes('max', 8)],
      ],
      { encoding: 'utf8' },
    );
    const trtexecMs = performance.now() - started;
    assert.equal(status, 0, stdout.slice(-1000));
    const begun = performance.now();
    refit(at('convnet-fp32.engine'), convnet(2), at('timed.engine'));
    const refitMs = performance.now() - begun;
    return { trtexecMs, refitMs, share: refitMs / trtexecMs };
  });

finish();
