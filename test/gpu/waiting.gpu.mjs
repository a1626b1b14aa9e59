// What a call costs beside the GPU's own work, with a real TensorRT on a real GPU, through dist/ and build/trtforge.node; one JSON line per check:
// a promise against a blocking call at several lengths, ordinary arrays against pinned ones, small tensors with and without copies. The figures are
// facts of the machine; a check fails where results differ or a figure is beyond what noise explains.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/waiting.gpu.mjs
//
// Plans that lie in the folder WAITING_PLANS (tiny.engine, half.engine, long.engine, images.engine) are taken from there in place of being built.
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openEngineSession } from '../../dist/engines/runtime/tensorrt/engine-session.js';
import { loadEngine } from '../../dist/engines/runtime/tensorrt/load-engine.js';
import { buildWith, initializer, openChecks, value, writeLayers, writeModel } from './harness.mjs';

const { toolchain, major, folder, check, finish } = openChecks();
const FLOAT = 1;
const TINY = 64;
const WIDE = 2048;
const PIXELS = 3 * 224 * 224;
const WARM = 20;
const ROUNDS = 5;
/** Promised is 30; machines are noisy. */
const MOST_PROMISE_US = 100;
const MOST_STAGING_US = 2000;

// ---- models: a chain of layers that share one weight is as long as one likes, and its file small

const chain = (count, from, to) =>
  Array.from({ length: count }, (_, at) => [
    {
      opType: 'MatMul',
      name: `mm${at}`,
      input: [at === 0 ? from : `h${at - 1}`, 'w'],
      output: [`m${at}`],
    },
    { opType: 'Tanh', name: `tanh${at}`, input: [`m${at}`], output: [at === count - 1 ? to : `h${at}`] },
  ]).flat();
const weight = () =>
  initializer(
    'w',
    FLOAT,
    [WIDE, WIDE],
    Float32Array.from({ length: WIDE * WIDE }, (_, at) => Math.sin(at) / 32),
  );
const chained = (name, count) =>
  writeModel(folder, name, {
    inputs: [value('x', FLOAT, ['batch', WIDE])],
    outputs: [value('y', FLOAT, ['batch', WIDE])],
    initializers: [weight()],
    nodes: chain(count, 'x', 'y'),
  });
const models = {
  tiny: () => writeLayers(folder, 'tiny', 4, TINY),
  half: () => chained('half', 40),
  long: () => chained('long', 200),
  // Reads all of a batch of pictures, then computes for a while.
  images: () =>
    writeModel(folder, 'images', {
      inputs: [value('x', FLOAT, ['batch', PIXELS])],
      outputs: [value('y', FLOAT, ['batch', WIDE])],
      initializers: [
        weight(),
        initializer('axis', 7, [1], BigInt64Array.of(1n)),
        initializer(
          'row',
          FLOAT,
          [1, WIDE],
          Float32Array.from({ length: WIDE }, (_, at) => at / WIDE),
        ),
      ],
      nodes: [
        { opType: 'ReduceSum', name: 'sum', input: ['x', 'axis'], output: ['sums'] },
        { opType: 'MatMul', name: 'spread', input: ['sums', 'row'], output: ['spread'] },
        ...chain(100, 'spread', 'y'),
      ],
    }),
};
const widths = { tiny: TINY, half: WIDE, long: WIDE, images: PIXELS };

/** One small row that every layer of a large batch reads again: the worst for memory that lies behind the bus. */
const writeRowReader = (layers) =>
  writeModel(folder, 'row', {
    inputs: [value('x', FLOAT, ['batch', WIDE]), value('row', FLOAT, [1, TINY])],
    outputs: [value('y', FLOAT, ['batch', WIDE])],
    initializers: [
      weight(),
      initializer('narrow', 7, [2], BigInt64Array.of(-1n, BigInt(TINY))),
      initializer('wide', 7, [2], BigInt64Array.of(-1n, BigInt(WIDE))),
    ],
    nodes: Array.from({ length: layers }, (_, at) => [
      { opType: 'MatMul', name: `mm${at}`, input: [at === 0 ? 'x' : `h${at - 1}`, 'w'], output: [`m${at}`] },
      { opType: 'Reshape', name: `narrow${at}`, input: [`m${at}`, 'narrow'], output: [`n${at}`] },
      { opType: 'Mul', name: `mul${at}`, input: [`n${at}`, 'row'], output: [`p${at}`] },
      { opType: 'Reshape', name: `wide${at}`, input: [`p${at}`, 'wide'], output: [`q${at}`] },
      { opType: 'Tanh', name: `tanh${at}`, input: [`q${at}`], output: [at === layers - 1 ? 'y' : `h${at}`] },
    ]).flat(),
  });
const plan = (name) => join(process.env.WAITING_PLANS ?? folder, `${name}.engine`);

/** Builds a model whose open dimension is the batch of x, quickly: the figures here are not the builder's. */
const build = (modelPath, planPath, [least, usual, most]) =>
  buildWith(toolchain, modelPath, planPath, {
    stronglyTyped: major >= 10,
    optimizationLevel: 1,
    profiles: [{ x: { min: least, opt: usual, max: most, values: false } }],
  });

await check('the engines are built', async () => {
  for (const [name, width] of Object.entries(widths)) {
    if (existsSync(plan(name))) continue;
    const batches = [1, 8, 64].map((batch) => [batch, width]);
    await build(models[name](), join(folder, `${name}.engine`), batches);
  }
  return {};
});

// ---- measuring: kinds take turns, so that what the machine does meanwhile falls on all alike

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];
const us = (number) => Math.round(number * 10) / 10;

/** Median microseconds of each kind of call, one after another. */
async function inTurns(kinds, calls) {
  const times = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [kind, run] of Object.entries(kinds)) {
      for (let at = -WARM; at < calls; at++) {
        const started = performance.now();
        const promise = run();
        if (promise !== undefined) await promise;
        if (at >= 0) times[kind].push((performance.now() - started) * 1000);
      }
    }
  }
  return Object.fromEntries(Object.entries(times).map(([kind, list]) => [kind, us(median(list))]));
}

async function using(name, work) {
  const session = await openEngineSession(plan(name), { toolchain, requirePassport: false });
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

for (const [name, calls] of [
  ['tiny', 2000],
  ['half', 400],
  ['long', 150],
]) {
  await check(`a promise against a blocking call: ${name}`, () =>
    using(name, async (session) => {
      const call = await session.prepare({ x: [name === 'tiny' ? 8 : 64, widths[name]] });
      call.inputs.x.forEach((_, at, all) => {
        all[at] = Math.sin(at);
      });
      call.runSync();
      const blocking = call.outputs.y.slice();
      call.outputs.y.fill(0);
      await call.run();
      assert.deepEqual(call.outputs.y, blocking);
      const before = process.cpuUsage();
      const started = performance.now();
      for (let at = 0; at < calls; at++) await call.run();
      const cpu = process.cpuUsage(before);
      const cores = (cpu.user + cpu.system) / 1000 / (performance.now() - started);
      const found = await inTurns({ sync: () => call.runSync(), promise: () => call.run() }, calls);
      const facts = {
        graph: call.cudaGraph,
        syncUs: found.sync,
        promiseUs: found.promise,
        promiseCostsUs: us(found.promise - found.sync),
        coresWhileAwaiting: us(cores),
      };
      call.close();
      assert.ok(facts.promiseCostsUs <= MOST_PROMISE_US, JSON.stringify(facts));
      return facts;
    }),
  );
}

for (const [batch, calls] of [
  [1, 300],
  [8, 200],
  [64, 100],
]) {
  await check(`ordinary arrays against pinned ones: ${batch} pictures`, () =>
    using('images', async (session) => {
      const shape = [batch, PIXELS];
      const call = await session.prepare({ x: shape });
      const numbers = Float32Array.from({ length: batch * PIXELS }, (_, at) => (at % 1009) / 1e7);
      const x = { dtype: 'float32', shape, bytes: new Uint8Array(numbers.buffer) };
      const inputs = new Map([['x', x]]);
      call.inputs.x.set(numbers);
      call.runSync();
      const pinned = call.outputs.y.slice();
      const bytesOf = (outputs) => Buffer.from(outputs.get('y').bytes);
      const expected = Buffer.from(pinned.buffer);
      for (let at = 0; at < 3; at++) assert.ok(bytesOf(await session.run(inputs)).equals(expected));
      assert.ok(bytesOf(session.runSync(inputs)).equals(expected));
      const found = await inTurns(
        {
          pinned: () => call.runSync(),
          sync: () => void session.runSync(inputs),
          promise: () => session.run(inputs),
          memcpy: () => void call.inputs.x.set(numbers),
        },
        calls,
      );
      const facts = {
        megabytes: us(x.bytes.length / 1e6),
        pinnedUs: found.pinned,
        ordinaryUs: found.sync,
        ordinaryPromiseUs: found.promise,
        oneThreadCopiesInUs: found.memcpy,
        stagingCostsUs: us(found.sync - found.pinned),
      };
      call.close();
      assert.ok(facts.stagingCostsUs <= MOST_STAGING_US, JSON.stringify(facts));
      return facts;
    }),
  );
}

await check('small tensors used in pinned memory, against copies', () =>
  copiedAgainstMapped(plan('tiny'), { x: [8, TINY] }, 'y', 3000),
);

await check('a small tensor in pinned memory that every layer reads', async () => {
  const path = join(folder, 'row.engine');
  const batches = [1, 64, 64].map((batch) => [batch, WIDE]);
  await build(writeRowReader(20), path, batches);
  return copiedAgainstMapped(path, { x: [64, WIDE], row: [1, TINY] }, 'y', 300);
});

/** The same call with its small tensors copied, used where they lie, and as measured: all give the same to the bit, and measuring finds the faster way. */
async function copiedAgainstMapped(path, inputs, output, calls) {
  const { native } = await loadEngine(path, { toolchain, requirePassport: false });
  try {
    const context = await native.createContext({ profile: 0, profiling: false }).done;
    const ways = {};
    const outputs = [];
    for (const smallTensors of ['copied', 'mapped', 'measured']) {
      const call = await context.prepare({
        shapes: Object.entries(inputs).map(([name, shape]) => ({ name, shape, values: null })),
        bindings: [...Object.keys(inputs), output].map((name) => ({ name, kind: 'host' })),
        graph: true,
        smallTensors,
      }).done;
      ways[smallTensors] = call;
      for (const name of Object.keys(inputs)) {
        new Float32Array(call.buffer(name)).forEach((_, at, all) => {
          all[at] = Math.sin(at);
        });
      }
      call.runSync([], []);
      outputs.push(Buffer.from(new Uint8Array(call.buffer(output))));
    }
    assert.ok(outputs.every((each) => each.equals(outputs[0])));
    const found = await inTurns(
      Object.fromEntries(Object.entries(ways).map(([way, call]) => [way, () => call.runSync([], [])])),
      calls,
    );
    const chosen = ways.measured.smallTensors;
    const other = chosen === 'copied' ? 'mapped' : 'copied';
    const facts = { graph: ways.measured.graph, chosen, ...found };
    assert.ok(found[chosen] <= 1.1 * found[other], JSON.stringify(facts));
    return facts;
  } finally {
    await native.close().done;
  }
}

finish();
