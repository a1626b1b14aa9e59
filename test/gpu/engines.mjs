// Small engines that JavaScript can compute too, built on the spot, and the words that checks of running them share.
// Plans that lie in the folder RUN_PLANS (affine.engine and so on) are taken from there in place of being built. With RUN_RUNTIME=libnvinfer_lean.so.N
// they are built version-compatible by the TensorRT found, and run by that library.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openEngineSession } from '../../dist/engines/runtime/tensorrt/engine-session.js';
import { openSupervisedEngine } from '../../dist/engines/runtime/tensorrt/supervised-engine.js';
import { float32Values, floatTensor } from '../../dist/formats/tensor/tensor.js';
import { buildWith, initializer, runtimeAt, value, writeLayers, writeModel } from './harness.mjs';

export const WIDTH = 64;
export const MOST_AUX_STREAMS = 3;
const FLOAT = 1;
const [INT8, INT32, INT64, BOOL, HALF, BFLOAT] = [3, 6, 7, 9, 10, 16];
/** Kinds of attributes, as ONNX numbers them. */
const [INT, INTS] = [2, 7];
/** What lets several contexts of TensorRT 8.6 have one profile at the same time; later versions need no leave. */
export const PROFILE_SHARING = 'profile-sharing-0806';
const range = (min, opt, max) => ({ min, opt, max, values: false });
const batches = (min, opt, max, width = WIDTH) => ({
  x: range([min, width], [opt, width], [max, width]),
});
const constant = (name, number) => initializer(name, FLOAT, [], Float32Array.of(number));
const node = (opType, input, output, more = {}) => ({ opType, name: output[0], input, output, ...more });

/** What each model is; `modern` is TensorRT 10 and later. */
const modelsIn = (folder, modern) => ({
  affine: () =>
    writeModel(folder, 'affine', {
      inputs: [value('x', FLOAT, ['batch', WIDTH])],
      outputs: [value('y', FLOAT, ['batch', WIDTH])],
      initializers: [constant('two', 2), constant('one', 1)],
      nodes: [node('Mul', ['x', 'two'], ['double']), node('Add', ['double', 'one'], ['y'])],
    }),
  state: () =>
    writeModel(folder, 'state', {
      inputs: [value('x', FLOAT, [2, WIDTH]), value('state', FLOAT, [2, WIDTH])],
      outputs: [value('y', FLOAT, [2, WIDTH]), value('state_out', FLOAT, [2, WIDTH])],
      initializers: [constant('two', 2)],
      nodes: [node('Add', ['state', 'x'], ['state_out']), node('Mul', ['state_out', 'two'], ['y'])],
    }),
  nonzero: () =>
    writeModel(folder, 'nonzero', {
      inputs: [value('x', FLOAT, [8])],
      outputs: [value('y', INT64, [1, 'found'])],
      nodes: [node('NonZero', ['x'], ['y'])],
    }),
  shape: () =>
    writeModel(folder, 'shape', {
      inputs: [value('x', FLOAT, [1, 1]), value('s', INT64, [2])],
      outputs: [value('y', FLOAT, ['a', 'b'])],
      nodes: [node('Expand', ['x', 's'], ['y'])],
    }),
  types: () => {
    const kinds = [FLOAT, HALF, INT32, BOOL, ...(modern ? [INT64, BFLOAT] : [])];
    return writeModel(folder, 'types', {
      inputs: kinds.map((kind) => value(`x${kind}`, kind, [2, 8])),
      outputs: kinds.map((kind) => value(`y${kind}`, kind, [2, 8])),
      nodes: kinds.map((kind) =>
        kind === BOOL
          ? node('Not', [`x${kind}`], [`y${kind}`])
          : node('Add', [`x${kind}`, `x${kind}`], [`y${kind}`]),
      ),
    });
  },
  int8: () => {
    const scale = () => constant('scale', 0.5);
    const zero = () => initializer('zero', INT8, [], Int8Array.of(0));
    return writeModel(folder, 'int8', {
      inputs: [value('x', INT8, [2, 8]), value('f', FLOAT, [2, 8])],
      outputs: [value('y', FLOAT, [2, 8]), value('q', INT8, [2, 8])],
      initializers: [scale(), zero()],
      nodes: [
        node('DequantizeLinear', ['x', 'scale', 'zero'], ['y']),
        node('QuantizeLinear', ['f', 'scale', 'zero'], ['q']),
      ],
    });
  },
  branches: () => branchesModel(folder, 'branches'),
  lone: () => branchesModel(folder, 'lone'),
  wide: () => writeLayers(folder, 'wide', 2, 2048),
  streamed: () => writeLayers(folder, 'streamed', 2, 2048),
  compatible: () => writeLayers(folder, 'compatible', 1, WIDTH),
});

/** Four chains of convolutions side by side, of kernels that cannot become one: work for several streams at once. */
function branchesModel(folder, name) {
  const channels = 32;
  const kernels = [1, 3, 5, 7];
  const conv = (kernel, step, input, output) =>
    node('Conv', [input, `w${kernel}.${step}`], [output], {
      attribute: [{ name: 'pads', type: INTS, ints: Array(4).fill(BigInt(kernel >> 1)) }],
    });
  return writeModel(folder, name, {
    inputs: [value('x', FLOAT, [2, channels, 56, 56])],
    outputs: [value('y', FLOAT, [2, channels * kernels.length, 56, 56])],
    initializers: kernels.flatMap((kernel) =>
      [0, 1].map((step) => {
        const size = channels * channels * kernel * kernel;
        const weights = Float32Array.from(
          { length: size },
          (_, at) => Math.sin(at + step) / Math.sqrt(size / channels),
        );
        return initializer(`w${kernel}.${step}`, FLOAT, [channels, channels, kernel, kernel], weights);
      }),
    ),
    nodes: [
      ...kernels.flatMap((kernel) => [
        conv(kernel, 0, 'x', `a${kernel}`),
        node('Relu', [`a${kernel}`], [`b${kernel}`]),
        conv(kernel, 1, `b${kernel}`, `c${kernel}`),
      ]),
      node(
        'Concat',
        kernels.map((kernel) => `c${kernel}`),
        ['y'],
        {
          attribute: [{ name: 'axis', type: INT, i: 1n }],
        },
      ),
    ],
  });
}

const profilesOf = {
  affine: [batches(1, 4, 8), batches(4, 32, 64)],
  shape: [{ s: { min: [1, 1], opt: [2, 3], max: [8, 8], values: true } }],
  wide: [batches(1, 8, 65536, 2048)],
  streamed: [batches(1, 8, 16, 2048)],
  compatible: [batches(1, 4, 8)],
};
const recipesOf = (modern) => ({
  affine: modern ? {} : { previewFeatures: [PROFILE_SHARING] },
  types: modern ? {} : { precision: 'fp16' },
  branches: { maxAuxStreams: MOST_AUX_STREAMS, optimizationLevel: 3, flags: ['no-tf32'] },
  lone: { maxAuxStreams: 0, optimizationLevel: 3, flags: ['no-tf32'] },
  streamed: { flags: ['weight-streaming'] },
  compatible: { flags: ['version-compatible'] },
});

/** Building a version-compatible engine takes this library beside the others. */
export const leanLibrary = ({ libraries }) =>
  readdirSync(dirname(libraries.inference)).find((name) => /^libnvinfer_lean\.so/.test(name));

/** What another library than the builder's takes to run a plan. */
export const COMPATIBLE = ['version-compatible', 'exclude-lean-runtime'];

/** Builds the engines of these names and gives what opens them; one that could not be built throws why when it is opened. */
export async function buildEngines({ toolchain, major, folder, check }, names) {
  const modern = major >= 10;
  const lean = process.env.RUN_RUNTIME;
  const recipes = recipesOf(modern);
  const models = modelsIn(folder, modern);
  const plan = (name) => join(process.env.RUN_PLANS ?? folder, `${name}.engine`);
  const unbuilt = new Map();
  const build = async (name) => {
    if (process.env.RUN_PLANS !== undefined && existsSync(plan(name))) return;
    const recipe = {
      stronglyTyped: modern,
      optimizationLevel: 1,
      profiles: profilesOf[name] ?? [],
      ...recipes[name],
      ...(lean === undefined ? {} : { flags: [...(recipes[name]?.flags ?? []), ...COMPATIBLE] }),
    };
    await buildWith(toolchain, models[name](), join(folder, `${name}.engine`), recipe).catch((error) =>
      unbuilt.set(name, error),
    );
  };
  await check('the engines are built', async () => {
    for (let at = 0; at < names.length; at += 4) await Promise.all(names.slice(at, at + 4).map(build));
    assert.equal(
      unbuilt.size,
      0,
      [...unbuilt].map(([name, error]) => `${name}: ${error.message}`).join('\n'),
    );
    return { engines: names.length };
  });
  const ours =
    lean === undefined
      ? { toolchain, requirePassport: false }
      : { toolchain: runtimeAt(lean), requirePassport: false, allowHostCode: true };
  return {
    plan,
    open(name, options = {}) {
      if (unbuilt.has(name)) throw unbuilt.get(name);
      return openEngineSession(plan(name), { ...ours, ...options });
    },
    supervised: (name, options = {}) =>
      openSupervisedEngine(name.includes('/') ? name : plan(name), { ...ours, ...options }),
  };
}

/** Works with a session and closes it, whatever comes of it. */
export async function using(opening, work) {
  const session = await opening;
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

export const floats = (shape, make) =>
  floatTensor(
    'float32',
    shape,
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, at) => make(at)),
  );
export const rows = (count, from = 0) => floats([count, WIDTH], (at) => from + (at % 1000));
export const affine = (tensor) => float32Values(tensor).map((number) => 2 * number + 1);
export const assertAffine = (outputs, input) =>
  assert.deepEqual(float32Values(outputs.get('y')), affine(input));
export const named = (tensors) => new Map(Object.entries(tensors));
export const microseconds = (ms) => Math.round(ms * 10_000) / 10;
