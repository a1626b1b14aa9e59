// Runs engines with a real TensorRT on a real GPU, through dist/ and build/trtforge.node, and prints one JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/run.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Plans that lie in the folder RUN_PLANS (affine.engine and so on) are taken from there in place of being built.
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildPlan } from '../../dist/engine/build-plan.js';
import { defaultRecipe } from '../../dist/engine/recipe.js';
import { openEngineSession } from '../../dist/runtime/engine-session.js';
import { loadEngine } from '../../dist/runtime/load-engine.js';
import { openSupervisedEngine } from '../../dist/runtime/supervised-engine.js';
import { elementsOf, float32Values, floatTensor, tensorFrom } from '../../dist/tensor/values.js';
import { initializer, openChecks, refused, value, writeLayers, writeModel } from './harness.mjs';

const { toolchain, major, folder, check, skip, finish } = openChecks();
const WIDTH = 64;
const ROUNDS = 1000;
/** Rounds after which libraries have loaded what they load once. */
const SETTLED = 200;
const MOST_GROWN_MIB = 32;
const FLOAT = 1;
const [INT8, INT32, INT64, BOOL, HALF, BFLOAT] = [3, 6, 7, 9, 10, 16];
/** Kinds of attributes, as ONNX numbers them. */
const [INT, INTS] = [2, 7];
const MOST_AUX_STREAMS = 3;
const modern = major >= 10;
const range = (min, opt, max) => ({ min, opt, max, values: false });
const batches = (min, opt, max, width = WIDTH) => ({
  x: range([min, width], [opt, width], [max, width]),
});
const constant = (name, number) => initializer(name, FLOAT, [], Float32Array.of(number));
const node = (opType, input, output, more = {}) => ({ opType, name: output[0], input, output, ...more });

// ---- the models: small enough that JavaScript computes what they should give

const models = {
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
  branches: () => branchesModel('branches'),
  lone: () => branchesModel('lone'),
  wide: () => writeLayers(folder, 'wide', 2, 2048),
  streamed: () => writeLayers(folder, 'streamed', 2, 2048),
  compatible: () => writeLayers(folder, 'compatible', 1, WIDTH),
};
/** Four chains of convolutions side by side, of kernels that cannot become one: work for several streams at once. */
function branchesModel(name) {
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
const recipesOf = {
  types: modern ? {} : { precision: 'fp16' },
  branches: { maxAuxStreams: MOST_AUX_STREAMS, optimizationLevel: 3, flags: ['no-tf32'] },
  lone: { maxAuxStreams: 0, optimizationLevel: 3, flags: ['no-tf32'] },
  streamed: { flags: ['weight-streaming'] },
  compatible: { flags: ['version-compatible'] },
};
const leanLibrary = readdirSync(dirname(toolchain.libraries.inference)).find((name) =>
  /^libnvinfer_lean\.so/.test(name),
);
const wanted = Object.keys(models).filter(
  (name) =>
    (modern || !['int8', 'streamed'].includes(name)) && (leanLibrary !== undefined || name !== 'compatible'),
);

const plan = (name) => join(process.env.RUN_PLANS ?? folder, `${name}.engine`);
const unbuilt = new Map();

async function build(name) {
  if (process.env.RUN_PLANS !== undefined && existsSync(plan(name))) return;
  try {
    await buildPlan(
      {
        toolchain,
        modelPath: models[name](),
        planPath: join(folder, `${name}.engine`),
        recipe: {
          ...defaultRecipe,
          stronglyTyped: modern,
          optimizationLevel: 1,
          profiles: profilesOf[name] ?? [],
          ...recipesOf[name],
        },
        computeCapabilities: [],
        timingCachePath: null,
        pluginPaths: [],
      },
      { emit: () => {} },
    );
  } catch (error) {
    unbuilt.set(name, error);
  }
}

await check('the engines are built', async () => {
  for (let at = 0; at < wanted.length; at += 4) await Promise.all(wanted.slice(at, at + 4).map(build));
  assert.equal(unbuilt.size, 0, [...unbuilt].map(([name, error]) => `${name}: ${error.message}`).join('\n'));
  return { engines: wanted.length };
});

// ---- what checks share

const open = (name, options = {}) => {
  if (unbuilt.has(name)) throw unbuilt.get(name);
  return openEngineSession(plan(name), { toolchain, requirePassport: false, ...options });
};
const supervised = (name, options = {}) =>
  openSupervisedEngine(name.includes('/') ? name : plan(name), {
    toolchain,
    requirePassport: false,
    ...options,
  });

async function using(opening, work) {
  const session = await opening;
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

const floats = (shape, make) =>
  floatTensor(
    'float32',
    shape,
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, at) => make(at)),
  );
const rows = (count, from = 0) => floats([count, WIDTH], (at) => from + (at % 1000));
const affine = (tensor) => float32Values(tensor).map((number) => 2 * number + 1);
const assertAffine = (outputs, input) => assert.deepEqual(float32Values(outputs.get('y')), affine(input));
const named = (tensors) => new Map(Object.entries(tensors));
const microseconds = (ms) => Math.round(ms * 10_000) / 10;

// ---- runs

await check('float32, several shapes, two profiles by shape', () =>
  using(open('affine'), async (session) => {
    assert.equal(session.inputs[0].profiles.length, 2);
    for (const count of [1, 8, 8, 9, 64, 4, 8]) {
      const input = rows(count);
      const outputs = await session.run(named({ x: input }));
      assert.deepEqual(outputs.get('y').shape, [count, WIDTH]);
      assertAffine(outputs, input);
    }
    const asked = rows(6);
    assertAffine(await session.run(named({ x: asked }), { profile: 1 }), asked);
    assertAffine(session.runSync(named({ x: rows(8, 3) })), rows(8, 3));
    return { backend: session.backend, loadMs: Math.round(session.facts.engine.loadMs) };
  }),
);

await check('every element type: float32, float16, bfloat16, int32, int64, bool', () =>
  using(open('types'), async (session) => {
    const numbers = Float32Array.from({ length: 16 }, (_, at) => at - 8.5);
    const whole = Array.from({ length: 16 }, (_, at) => at - 8);
    const make = {
      float32: () => floatTensor('float32', [2, 8], numbers),
      float16: () => floatTensor('float16', [2, 8], numbers),
      bfloat16: () => floatTensor('bfloat16', [2, 8], numbers),
      int32: () =>
        tensorFrom(
          'int32',
          [2, 8],
          Int32Array.from(whole, (each) => each * 100_000_000),
        ),
      int64: () =>
        tensorFrom(
          'int64',
          [2, 8],
          BigInt64Array.from(whole, (each) => BigInt(each) << 40n),
        ),
      bool: () =>
        tensorFrom(
          'bool',
          [2, 8],
          Uint8Array.from(whole, (each) => Number(each % 2 === 0)),
        ),
    };
    const inputs = new Map(session.inputs.map(({ name, dtype }) => [name, make[dtype]()]));
    const outputs = await session.run(inputs);
    for (const { name, dtype } of session.inputs) {
      const given = inputs.get(name);
      const got = outputs.get(name.replace('x', 'y'));
      assert.equal(got.dtype, dtype);
      if (/float/.test(dtype))
        assert.deepEqual(
          float32Values(got),
          float32Values(given).map((each) => 2 * each),
        );
      else if (dtype === 'bool')
        assert.deepEqual(
          elementsOf(got),
          elementsOf(given).map((each) => 1 - each),
        );
      else
        assert.deepEqual(
          elementsOf(got),
          elementsOf(given).map((each) => each + each),
        );
    }
    return { types: session.inputs.map(({ dtype }) => dtype) };
  }),
);

if (!modern) skip('int8 in and out', 'TensorRT 8.6 takes int8 tensors only with dynamic ranges');
else
  await check('int8 in and out', () =>
    using(open('int8'), async (session) => {
      const x = tensorFrom(
        'int8',
        [2, 8],
        Int8Array.from({ length: 16 }, (_, at) => at * 8 - 64),
      );
      const f = floats([2, 8], (at) => at * 3 - 20);
      const outputs = await session.run(named({ x, f }));
      assert.deepEqual(
        [...float32Values(outputs.get('y'))],
        [...elementsOf(x)].map((each) => each / 2),
      );
      assert.deepEqual(
        [...elementsOf(outputs.get('q'))],
        [...float32Values(f)].map((each) => Math.max(-128, Math.min(127, each * 2))),
      );
    }),
  );

await check('a shape tensor: its values decide the output, and are held against the profile', () =>
  using(open('shape'), async (session) => {
    const s = session.inputs.find(({ name }) => name === 's');
    assert.equal(s.hostValues, true);
    const values = (...dims) =>
      s.dtype === 'int64'
        ? tensorFrom('int64', [2], BigInt64Array.from(dims, BigInt))
        : tensorFrom('int32', [2], Int32Array.from(dims));
    for (const dims of [
      [2, 3],
      [8, 1],
      [2, 3],
      [5, 7],
    ]) {
      const outputs = await session.run(named({ x: floats([1, 1], () => 1.5), s: values(...dims) }));
      assert.deepEqual(outputs.get('y').shape, dims);
      assert.ok(float32Values(outputs.get('y')).every((each) => each === 1.5));
    }
    const outside = session.run(named({ x: floats([1, 1], () => 1), s: values(9, 1) }));
    const facts = await refused('TF_PROFILE_MISFIT', /s has the values \[9, 1\]/, outside);
    return { dtype: s.dtype, ...facts };
  }),
);

await check('an output whose shape depends on the data', () =>
  using(open('nonzero'), async (session) => {
    const inputs = [
      [0, 1, 0, 2, 0, 3, 0, 4],
      [0, 0, 0, 0, 0, 0, 0, 0],
      [1, 1, 1, 1, 1, 1, 1, 1],
    ];
    const outputs = await Promise.all(
      [...inputs, ...inputs].map((values) => session.run(named({ x: floats([8], (at) => values[at]) }))),
    );
    for (const [at, found] of outputs.entries()) {
      const places = inputs[at % 3].flatMap((each, place) => (each === 0 ? [] : [place]));
      assert.equal(found.get('y').shape.at(-1), places.length);
      assert.deepEqual([...elementsOf(found.get('y'))].map(Number), places);
    }
    return { refusals: session.facts.cudaGraphRefusals };
  }),
);

await check('with and without a CUDA graph: the same bits', () =>
  using(open('wide'), async (session) => {
    const input = floats([16, 2048], (at) => Math.sin(at));
    const bits = [];
    const times = {};
    for (const cudaGraph of ['never', 'always']) {
      const call = await session.prepare({ x: [16, 2048] }, { cudaGraph });
      call.inputs.x.set(float32Values(input));
      call.runSync();
      bits.push(Buffer.from(call.output('y').bytes.slice()));
      const started = performance.now();
      for (let run = 0; run < 200; run++) call.runSync();
      times[`${cudaGraph}Us`] = microseconds((performance.now() - started) / 200);
      if (cudaGraph === 'always') assert.equal(call.cudaGraph, true, call.cudaGraphRefusal);
      call.close();
    }
    assert.ok(bits[0].equals(bits[1]));
    assert.ok(bits[0].some((byte) => byte !== 0));
    return times;
  }),
);

await check('ordinary arrays, arrays of the session, and promises give the same', () =>
  using(open('affine'), async (session) => {
    const call = await session.prepare({ x: [8, WIDTH] });
    const input = rows(8, 11);
    call.inputs.x.set(float32Values(input));
    await call.run();
    assert.deepEqual(call.outputs.y, affine(input));
    for (let run = 0; run < 3; run++) await session.run(named({ x: input }));
    const target = { dtype: 'float32', shape: [8, WIDTH], bytes: new Uint8Array(8 * WIDTH * 4) };
    assertAffine(await session.run(named({ x: input }), { outputs: named({ y: target }) }), input);
    assertAffine(session.runSync(named({ x: input }), { outputs: 'pinned' }), input);
    const inputs = named({ x: input });
    const time = async (work) => {
      for (let run = 0; run < 200; run++) await work();
      const started = performance.now();
      for (let run = 0; run < 1000; run++) await work();
      return microseconds((performance.now() - started) / 1000);
    };
    const blocking = (work) => {
      for (let run = 0; run < 200; run++) work();
      const started = performance.now();
      for (let run = 0; run < 2000; run++) work();
      return microseconds((performance.now() - started) / 2000);
    };
    return {
      graph: call.cudaGraph,
      preparedSyncUs: blocking(() => call.runSync()),
      sessionSyncUs: blocking(() => session.runSync(inputs)),
      preparedUs: await time(() => call.run()),
      sessionUs: await time(() => session.run(inputs)),
    };
  }),
);

await check('300 steps with the state on the device, against JavaScript', () =>
  using(open('state'), async (session) => {
    const state = session.state({ state: 'state_out' });
    const step = await session.prepare({}, { state });
    const sums = new Float32Array(2 * WIDTH);
    for (let at = 0; at < 300; at++) {
      for (let place = 0; place < sums.length; place++) {
        const given = Math.fround(Math.sin(at + place));
        step.inputs.x[place] = given;
        sums[place] += given;
      }
      if (at % 3 === 0) await step.run();
      else step.runSync();
      assert.deepEqual(
        step.outputs.y,
        sums.map((each) => 2 * each),
        `step ${at}`,
      );
    }
    assert.deepEqual(float32Values(await state.read('state')), sums);
    assert.equal(state.steps, 300);
    await state.write(
      'state',
      floats([2, WIDTH], () => 7),
    );
    step.inputs.x.fill(1);
    step.runSync();
    assert.ok(step.outputs.y.every((each) => each === 16));
    await state.reset();
    step.runSync();
    assert.ok(step.outputs.y.every((each) => each === 2));
    return { graph: step.cudaGraph, refusal: step.cudaGraphRefusal };
  }),
);

if (!modern)
  skip('contexts at the same time', 'on TensorRT 8.6 a profile of an engine serves one context at a time');
else
  await check('contexts at the same time', () =>
    using(open('affine', { contexts: 2 }), async (session) => {
      const inputs = Array.from({ length: 200 }, (_, at) => rows(1 + (at % 8), at));
      const outputs = await Promise.all(inputs.map((input) => session.run(named({ x: input }))));
      for (const [at, input] of inputs.entries()) assertAffine(outputs[at], input);
      const own = session.context();
      assertAffine(await own.run(named({ x: rows(3) })), rows(3));
      await own.close();
    }),
  );

let auxStreams = 0;
await check(
  'an engine with auxiliary streams gives what one without gives, with and without a graph',
  async () => {
    const input = floats([2, 32, 56, 56], (at) => Math.sin(at));
    const answers = [];
    const graphs = [];
    for (const name of ['lone', 'branches'])
      await using(open(name), async (session) => {
        auxStreams = session.facts.engine.auxStreams;
        assert.ok(
          name === 'lone' ? auxStreams === 0 : auxStreams <= MOST_AUX_STREAMS,
          `${auxStreams} streams`,
        );
        for (const cudaGraph of ['never', 'always']) {
          const call = await session.prepare({ x: [2, 32, 56, 56] }, { cudaGraph });
          call.inputs.x.set(float32Values(input));
          for (let run = 0; run < 50; run++) call.runSync();
          answers.push(Float32Array.from(call.outputs.y));
          graphs.push(call.cudaGraph);
          call.close();
        }
      });
    for (const answer of answers)
      assert.ok(answer.every((each, at) => Math.abs(each - answers[0][at]) <= 1e-3));
    assert.ok(answers[0].some((each) => each !== 0));
    return { auxStreams, graphs };
  },
);
if (auxStreams === 0)
  skip(
    'several streams of one engine',
    `this TensorRT planned none although ${MOST_AUX_STREAMS} were allowed`,
  );

if (leanLibrary === undefined)
  skip('a version-compatible engine', 'this TensorRT has no libnvinfer_lean, which building one needs');
else
  await check('a version-compatible engine loads only where its code may run', async () => {
    await using(open('compatible', { allowHostCode: true }), async (session) => {
      const outputs = await session.run(named({ x: rows(2) }));
      assert.ok(float32Values(outputs.get('y')).every(Number.isFinite));
    });
    return refused('TF_PLAN_LOAD_FAILED', /./, open('compatible'));
  });

if (!modern) skip('weight streaming', 'TensorRT has it from 10.0 on');
else
  await check('weight streaming: a part of the weights on the GPU gives the same', async () => {
    const input = floats([4, 2048], (at) => Math.cos(at));
    const answers = [];
    let facts;
    for (const weightBudget of [undefined, 16 << 20, 'automatic']) {
      await using(open('streamed', weightBudget === undefined ? {} : { weightBudget }), async (session) => {
        facts = session.facts.engine;
        const outputs = await session.run(named({ x: input }));
        await session.run(named({ x: input }));
        answers.push(Buffer.from(outputs.get('y').bytes));
      });
    }
    assert.ok(facts.streamableWeightsBytes > 0);
    for (const answer of answers) {
      const numbers = new Float32Array(
        answer.buffer.slice(answer.byteOffset, answer.byteOffset + answer.length),
      );
      const first = new Float32Array(
        answers[0].buffer.slice(answers[0].byteOffset, answers[0].byteOffset + answers[0].length),
      );
      assert.ok(numbers.every((each, at) => Math.abs(each - first[at]) <= 1e-3));
    }
    return { streamable: facts.streamableWeightsBytes };
  });

// ---- bad input

await check('a shape outside every profile is our sentence, before the call', () =>
  using(open('affine'), async (session) => {
    const attempt = session.run(named({ x: rows(65) }));
    return refused(
      'TF_PROFILE_MISFIT',
      /profile 0 takes \[1\.\.8, 64\], profile 1 takes \[4\.\.64, 64\]/,
      attempt,
    );
  }),
);

await check('wrong dtype, rank, bytes and names', () =>
  using(open('affine'), async (session) => {
    const wrong = [
      { x: tensorFrom('int32', [1, WIDTH], new Int32Array(WIDTH)) },
      { x: floats([WIDTH], () => 0) },
      { x: floats([1, WIDTH + 1], () => 0) },
      { x: { dtype: 'float32', shape: [1, WIDTH], bytes: new Uint8Array(4) } },
      { z: rows(1) },
      {},
    ];
    for (const tensors of wrong) await refused('TF_SESSION_INPUT', /./, session.run(named(tensors)));
    assertAffine(await session.run(named({ x: rows(1) })), rows(1));
  }),
);

const spoilt = (name, change) => {
  const path = join(folder, name);
  writeFileSync(path, change(readFileSync(plan('affine'))));
  return path;
};

await check('text, a foreign header and another version never reach the library', async () => {
  const refuse = (code, text, path) =>
    refused(code, text, openEngineSession(path, { toolchain, requirePassport: false }));
  const header = (bytes) => {
    const json = Buffer.from(JSON.stringify({ description: 'Ultralytics YOLO' }));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(json.length);
    return Buffer.concat([length, json, bytes]);
  };
  const version = (bytes) =>
    Buffer.concat([bytes.subarray(0, 24), Buffer.of(9, 9, 9, 9), bytes.subarray(28)]);
  await refuse(
    'TF_PLAN_INVALID',
    /not a TensorRT plan/,
    spoilt('text.engine', () => 'this is text '.repeat(100)),
  );
  await refuse(
    'TF_PLAN_INVALID',
    /cut short/,
    spoilt('short.engine', (bytes) => bytes.subarray(0, 20)),
  );
  await refuse('TF_ENGINE_VERSION_MISMATCH', /9\.9\.9\.9/, spoilt('other.engine', version));
  return refuse('TF_PLAN_FOREIGN_HEADER', /Ultralytics/, spoilt('foreign.engine', header));
});

await check('a plan cut in the middle ends as an error, whatever the library does', async () => {
  const path = spoilt('half.engine', (bytes) => bytes.subarray(0, bytes.length >> 1));
  const error = await supervised(path).then(
    (session) => session.close().then(() => assert.fail('an error was expected')),
    (reason) => reason,
  );
  assert.ok(['TF_PLAN_LOAD_FAILED', 'TF_CHILD_DIED'].includes(error.code), error.message);
  return { code: error.code, message: error.message.split('\n')[0] };
});

await check('a library that has disappeared', () => {
  const inference = join(folder, 'libnvinfer.so.99');
  const gone = { ...toolchain, libraries: { ...toolchain.libraries, inference } };
  return refused('TF_LIBRARY_LOAD_FAILED', /libnvinfer\.so\.99/, open('affine', { toolchain: gone }));
});

await check('a plug-in library that is not there', () =>
  refused('TF_FILE_NOT_FOUND', /gone\.so/, open('affine', { plugins: [join(folder, 'gone.so')] })),
);

await check('no GPU to be seen: CUDA_VISIBLE_DEVICES is empty', () =>
  refused(
    'TF_GPU_UNAVAILABLE',
    /shows none/,
    supervised('affine', { environment: { ...process.env, CUDA_VISIBLE_DEVICES: '' } }),
  ),
);

await check('a GPU that is not there', () =>
  refused('TF_GPU_UNAVAILABLE', /no GPU 99/, open('affine', { device: 99 })),
);

// ---- faults

/** Takes the GPU's memory down to pieces of `smallest` bytes while `work` goes on. */
async function withoutMemory(smallest, work) {
  const { native } = await loadEngine(plan('affine'), { toolchain, requirePassport: false });
  const taken = [];
  let bytes = 0;
  try {
    for (let piece = 64 * 2 ** 30; piece >= smallest; ) {
      try {
        taken.push(native.allocate(piece));
        bytes += piece;
      } catch {
        piece = Math.floor(piece / 2);
      }
    }
    return { takenGiB: Math.round(bytes / 2 ** 30), ...(await work()) };
  } finally {
    for (const memory of taken) memory.close();
    await native.close().done;
  }
}

await check('memory exhausted while an engine loads', () =>
  withoutMemory(1 << 20, () => refused('TF_GPU_MEMORY', /free/, open('wide'))),
);

await check('memory exhausted while a call is prepared, and the session goes on when there is some', () =>
  using(open('wide'), async (session) => {
    const facts = await withoutMemory(1 << 20, () =>
      refused('TF_GPU_MEMORY', /free/, session.prepare({ x: [65536, 2048] })),
    );
    const outputs = await session.run(named({ x: floats([2, 2048], () => 0) }));
    assert.ok(float32Values(outputs.get('y')).every((each) => each === 0 || process.env.RUN_PLANS));
    return facts;
  }),
);

await check('an abort: before, in the queue, in a child', async () => {
  await using(open('affine'), async (session) => {
    const inputs = named({ x: rows(8) });
    await session.run(inputs);
    const cancelled = (signal) => refused('TF_CANCELLED', /ancelled/, session.run(inputs, { signal }));
    await cancelled(AbortSignal.abort());
    const stopping = new AbortController();
    const others = Array.from({ length: 50 }, () => session.run(inputs));
    const last = cancelled(stopping.signal);
    stopping.abort();
    await last;
    await Promise.all(others);
    assertAffine(await session.run(inputs), rows(8));
  });
  return using(supervised('affine'), async (session) => {
    const stopping = new AbortController();
    const run = session.runRepeatedly(named({ x: rows(8) }), {
      iterations: 100_000_000,
      signal: stopping.signal,
    });
    setTimeout(() => stopping.abort(), 300);
    return refused('TF_CANCELLED', /ancelled/, run);
  });
});

/** Processes that this one has started and that are still there: the fourth field of a process's `stat` is its parent. */
const children = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ');
        return Number(fields[1]) === process.pid;
      } catch {
        return false;
      }
    });

await check('a child that is killed is an error with the signal', async () => {
  const before = new Set(children());
  const session = await supervised('affine');
  const [child] = children().filter((pid) => !before.has(pid));
  assert.ok(child !== undefined, 'the child was not found under /proc');
  const run = session.runRepeatedly(named({ x: rows(8) }), { iterations: 100_000_000 });
  setTimeout(() => process.kill(Number(child), 'SIGKILL'), 300);
  const facts = await refused('TF_CHILD_DIED', /SIGKILL/, run);
  await session.close();
  return facts;
});

await check('1,000 load, run, dispose rounds leave memory where it was', async () => {
  const input = named({ x: rows(4) });
  const marks = [];
  const started = performance.now();
  for (let round = 0; round <= ROUNDS; round++) {
    await using(open('affine'), async (session) => {
      if (round === SETTLED || round === ROUNDS) {
        globalThis.gc?.();
        marks.push({
          rss: process.memoryUsage().rss,
          free: session.facts.engine.gpuMemory.freeBefore,
        });
      }
      assertAffine(await session.run(input), rows(4));
    });
  }
  const [settled, last] = marks;
  const facts = {
    rounds: ROUNDS,
    msPerRound: Math.round((performance.now() - started) / ROUNDS),
    rssMiB: [settled.rss, last.rss].map((bytes) => Math.round(bytes / 2 ** 20)),
    rssGrownMiB: Math.round((last.rss - settled.rss) / 2 ** 20),
    gpuGrownMiB: Math.round((settled.free - last.free) / 2 ** 20),
  };
  assert.ok(
    facts.rssGrownMiB <= MOST_GROWN_MIB && facts.gpuGrownMiB <= MOST_GROWN_MIB,
    JSON.stringify(facts),
  );
  return facts;
});

skip(
  'an engine of another compute capability',
  'it takes a second GPU; the passport check is tested without one',
);

finish();
