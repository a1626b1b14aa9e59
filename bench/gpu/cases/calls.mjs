import { openEngineSession } from '../../../dist/engines/runtime/tensorrt/engine-session.js';
import { tensorFrom } from '../../../dist/formats/tensor/tensor.js';
import { writeLayers } from '../../../test/gpu/harness.mjs';
import { atBatch } from '../bench-request.mjs';
import { figure, inTurns, median } from '../figures.mjs';
import { models } from '../machine.mjs';

const now = () => Number(process.hrtime.bigint()) / 1000;

/** Median microseconds of a call that blocks. */
function blocking(call, count) {
  const times = [];
  for (let at = 0; at < count + count / 10; at++) {
    const started = now();
    call();
    times.push(now() - started);
  }
  return median(times.slice(count / 10));
}

/** Median microseconds of a call that gives a promise. */
async function awaited(call, count) {
  const times = [];
  for (let at = 0; at < count + count / 10; at++) {
    const started = now();
    await call();
    times.push(now() - started);
  }
  return median(times.slice(count / 10));
}

/** One call after another: sessions against NVIDIA's Python API with a CUDA graph, from page-locked buffers and from ordinary arrays. */
export async function calls(machine, tell, problem) {
  if (machine.python === null) problem('there is no Python with TensorRT to compare with');
  await tiny(machine, tell, problem);
  const plan = await machine.typedPlan('resnet50');
  for (const [batch, count] of [
    [1, 1000],
    [64, 200],
  ]) {
    await resnet(machine, plan, batch, count, tell, problem);
  }
}

const python = ({ python: peer }, plan, shapes, host, count) =>
  peer === null ? null : async () => (await peer.ask({ plan, shapes, host, calls: count })).us;

const open = (machine, plan) =>
  openEngineSession(plan, {
    requirePassport: false,
    environment: machine.environment,
    toolchain: machine.toolchain,
  });

async function tiny(machine, tell, problem) {
  const width = 64;
  const profile = { x: { min: [1, width], opt: [8, width], max: [64, width], values: false } };
  const plan = await machine.plan(
    'tiny',
    () => writeLayers(machine.work, 'tiny', 4, width),
    machine.recipe(profile),
  );
  const session = await open(machine, plan);
  try {
    const call = await session.prepare({ x: [8, width] });
    const inputs = new Map([['x', tensorFrom('float32', [8, width], new Float32Array(8 * width).fill(0.5))]]);
    await session.run(inputs);
    // The first calls are compiled meanwhile: without this they are half of two rounds.
    blocking(() => session.runSync(inputs), 20_000);
    await awaited(() => session.run(inputs), 20_000);
    const found = await inTurns(
      machine.rounds,
      {
        prepared: async () => blocking(() => call.runSync(), 5000),
        preparedAsync: () => awaited(() => call.run(), 5000),
        sync: async () => blocking(() => session.runSync(inputs), 5000),
        async: () => awaited(() => session.run(inputs), 5000),
        pinned: python(machine, plan, { x: [8, width] }, 'pinned', 5000),
        ordinary: python(machine, plan, { x: [8, width] }, 'ordinary', 5000),
      },
      problem,
    );
    const what = '4 layers, 64 wide';
    tell(
      figure(`${what}: prepared runSync, Python with pinned buffers`, 'µs', found.prepared, found.pinned, {
        atMost: 1,
      }),
    );
    tell(
      figure(
        `${what}: session.runSync of ordinary arrays, Python likewise`,
        'µs',
        found.sync,
        found.ordinary,
        { atMost: 1 },
      ),
    );
    tell(over(`${what}: prepared run over prepared runSync`, found.preparedAsync, found.prepared));
    tell(over(`${what}: session.run over session.runSync`, found.async, found.sync));
    call.close();
  } finally {
    await session.close();
  }
}

/** A promise may cost 30 microseconds. */
function over(what, promised, blocked) {
  const more = promised === null || blocked === null ? null : promised - blocked;
  return {
    ...figure(what, 'µs', promised, blocked),
    limit: '30 µs more',
    ...(more === null ? {} : { met: more <= 30 }),
  };
}

async function resnet(machine, plan, batch, count, tell, problem) {
  const shapes = atBatch(models.resnet50.profile, batch);
  const session = await open(machine, plan);
  try {
    const call = await session.prepare(shapes);
    const tensors = new Map(
      session.inputs.map(({ name }) => {
        const { dtype, shape } = call.input(name);
        const elements = new call.inputs[name].constructor(call.inputs[name].length);
        for (let at = 0; at < elements.length; at++) elements[at] = (at % 255) / 255;
        call.inputs[name].set(elements);
        return [name, tensorFrom(dtype, shape, elements)];
      }),
    );
    await session.run(tensors);
    const found = await inTurns(
      machine.rounds,
      {
        prepared: async () => blocking(() => call.runSync(), count),
        sync: async () => blocking(() => session.runSync(tensors), count),
        async: () => awaited(() => session.run(tensors), count),
        pinned: python(machine, plan, shapes, 'pinned', count),
        ordinary: python(machine, plan, shapes, 'ordinary', count),
      },
      problem,
    );
    const what = `ResNet-50 FP16, batch ${batch}`;
    tell(
      figure(
        `${what}: the session's own arrays, Python with pinned buffers`,
        'µs',
        found.prepared,
        found.pinned,
        { atMost: 1.01 },
      ),
    );
    tell(
      figure(
        `${what}: ordinary arrays, Python likewise`,
        'µs',
        found.sync,
        found.ordinary,
        batch === 64 ? { atMost: 0.6 } : {},
      ),
    );
    tell(figure(`${what}: ordinary arrays by promise, Python likewise`, 'µs', found.async, found.ordinary));
    call.close();
  } finally {
    await session.close();
  }
}
