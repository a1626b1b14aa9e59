// Runs engines with a real TensorRT on a real GPU, through dist/ and build/trtforge.node, and prints one JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/run.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// With RUN_RUNTIME=…/libnvinfer_lean.so.11 the engines are built version-compatible by that TensorRT and run by this library.
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { gpuBytesInUse } from '../../dist/addon/gpus.js';
import { elementsOf, float32Values, floatTensor, tensorFrom } from '../../dist/formats/tensor/tensor.js';
import {
  affine,
  assertAffine,
  buildEngines,
  floats,
  leanLibrary,
  MOST_AUX_STREAMS,
  microseconds,
  named,
  rows,
  using,
  WIDTH,
} from './engines.mjs';
import { openChecks, refused } from './harness.mjs';

const checks = openChecks();
const { toolchain, major, check, skip, finish } = checks;
const modern = major >= 10;
const lean = leanLibrary(toolchain);
const { open } = await buildEngines(checks, [
  ...['affine', 'state', 'nonzero', 'shape', 'types', 'branches', 'lone', 'wide'],
  ...(modern ? ['int8', 'streamed'] : []),
  ...(lean === undefined ? [] : ['compatible']),
]);

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

await check('memory in use on the GPU counts an open engine', () =>
  using(open('affine'), async (session) => {
    await session.run(named({ x: rows(8) }));
    const bytes = gpuBytesInUse();
    assert.ok(bytes > 16e6, `${bytes}`);
    return { bytes };
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
    return { refusals: session.facts.cudaGraphFallbacks };
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
      if (cudaGraph === 'always') assert.equal(call.cudaGraph, true, call.cudaGraphFallback);
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

await check('arrays that are transferred in mid-run: what they held counts, and no thread touches them', () =>
  using(open('wide', { cudaGraph: 'never' }), async (session) => {
    const shape = [2048, 2048];
    const content = Float32Array.from({ length: 2048 * 2048 }, (_, at) => (at % 17) / 17);
    const input = () => floatTensor('float32', shape, content.slice());
    const expected = (await session.run(named({ x: input() }))).get('y');
    const freed = async (tensors) => {
      await new Promise((resolve) => setImmediate(resolve));
      for (const { bytes } of tensors) structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
      globalThis.gc?.();
    };
    const blocked = [];
    for (let round = 0; round < 10; round++) {
      const inputs = Array.from({ length: 3 }, input);
      const running = inputs.map((x) => {
        const started = performance.now();
        const run = session.run(named({ x }));
        blocked.push(performance.now() - started);
        return run;
      });
      await freed(inputs);
      for (const outputs of await Promise.all(running))
        assert.ok(Buffer.compare(outputs.get('y').bytes, expected.bytes) === 0, `round ${round}`);
      const y = { ...expected, bytes: new Uint8Array(expected.bytes.length) };
      const lost = refused(
        'TF_SESSION_INPUT',
        /transferred/,
        session.run(named({ x: input() }), { outputs: named({ y }) }),
      );
      await freed([y]);
      await lost;
    }
    return { mostBlockedUs: microseconds(Math.max(...blocked)) };
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
    return { graph: step.cudaGraph, refusal: step.cudaGraphFallback };
  }),
);

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

if (lean === undefined)
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
    const budgets = [];
    let facts;
    for (const weightBudget of [undefined, 16 << 20, 'automatic']) {
      await using(open('streamed', weightBudget === undefined ? {} : { weightBudget }), async (session) => {
        facts = session.facts.engine;
        budgets.push(facts.weightBudgetBytes);
        const outputs = await session.run(named({ x: input }));
        await session.run(named({ x: input }));
        answers.push(Buffer.from(outputs.get('y').bytes));
      });
    }
    const streamable = facts.streamableWeightsBytes;
    assert.ok(streamable > 0);
    assert.deepEqual(budgets.slice(0, 2), [streamable, Math.min(16 << 20, streamable)]);
    assert.ok(budgets[2] >= 0 && budgets[2] <= streamable, `${budgets[2]} bytes chosen`);
    for (const answer of answers) {
      const numbers = new Float32Array(
        answer.buffer.slice(answer.byteOffset, answer.byteOffset + answer.length),
      );
      const first = new Float32Array(
        answers[0].buffer.slice(answers[0].byteOffset, answers[0].byteOffset + answers[0].length),
      );
      assert.ok(numbers.every((each, at) => Math.abs(each - first[at]) <= 1e-3));
    }
    return { streamable, automatic: budgets[2] };
  });

finish();
