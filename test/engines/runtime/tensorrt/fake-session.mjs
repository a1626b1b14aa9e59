// Runs engines of the fake libraries through dist/ and the compiled addon, in a process whose loader knows the fake GPU; one JSON line per check.
// argv: toolchain (JSON), folder of plans. `engine-over-fake.integration.test.ts` starts it and holds the lines against what is right.
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ActivationPool } from '../../../../dist/engines/runtime/tensorrt/activation-pool.js';
import { openEngineSession } from '../../../../dist/engines/runtime/tensorrt/engine-session.js';
import { openSupervisedEngine } from '../../../../dist/engines/runtime/tensorrt/supervised-engine.js';

const toolchain = JSON.parse(process.argv[2]);
const plan = (name) => join(process.argv[3], `${name}.engine`);
const say = (check, facts) => console.log(JSON.stringify({ check, ...facts }));
const open = (name, options = {}) =>
  openEngineSession(plan(name), { toolchain, requirePassport: false, ...options });
const freeOn = async (device) => {
  const session = await open('affine', { device });
  const { freeBefore } = session.facts.engine.gpuMemory;
  await session.close();
  return freeBefore;
};
const sessions = [];
const opened = async (...asked) => {
  const session = await open(...asked);
  sessions.push(session);
  return session;
};
const floats = (shape, values) => ({
  dtype: 'float32',
  shape,
  bytes: new Uint8Array(Float32Array.from(values).buffer),
});
const numbers = ({ bytes }) => [...new Float32Array(bytes.slice().buffer)];
const code = (attempt) =>
  Promise.resolve()
    .then(attempt)
    .then(
      () => 'nothing was refused',
      (error) => error.code ?? String(error),
    );
const refusal = (attempt) =>
  Promise.resolve()
    .then(attempt)
    .then(
      () => 'nothing was refused',
      (error) => error.message,
    );
const x = (rows, from = 0) =>
  floats(
    [rows, 4],
    Array.from({ length: 4 * rows }, (_, at) => from + at),
  );

const checks = {
  async affine() {
    const session = await opened('affine');
    const answers = [];
    for (const rows of [2, 2, 9, 2]) {
      const y = (await session.run(new Map([['x', x(rows)]]))).get('y');
      answers.push([y.shape, numbers(y).slice(0, 4)]);
    }
    const sync = numbers(session.runSync(new Map([['x', x(2, 5)]])).get('y'));
    const misfit = await code(() => session.run(new Map([['x', x(65)]])));
    return { answers, sync, misfit, profiles: session.inputs[0].profiles, backend: session.backend };
  },
  async loads() {
    process.env.FAKE_LOADS = '3';
    const loaded = await Promise.all(['affine', 'state', 'large'].map((name) => opened(name)));
    delete process.env.FAKE_LOADS;
    const lines = readFileSync(process.env.FAKE_CALLS, 'utf8').split('\n');
    return {
      how: lines.filter((line) => /^reads |at once$/.test(line)).toSorted(),
      sizes: lines.filter((line) => line.startsWith('deserializeCudaEngine ')).length,
      facts: loaded.map(({ facts: { engine } }) => engine),
    };
  },
  async cut() {
    copyFileSync(plan('affine'), plan('cut'));
    Object.assign(process.env, { FAKE_LOAD: 'cuts', FAKE_LOADED: plan('cut') });
    return { error: await refusal(() => open('cut')) };
  },
  async prepared() {
    const session = await opened('affine');
    const call = await session.prepare({ x: [3, 4] });
    call.inputs.x.fill(4);
    call.runSync();
    const sync = [...call.outputs.y];
    call.inputs.x.fill(5);
    await call.run();
    return { graph: call.cudaGraph, refusal: call.cudaGraphFallback, sync, async: [...call.outputs.y] };
  },
  async state() {
    const session = await opened('state');
    const state = session.state({ state: 'state_out' });
    const step = await session.prepare({}, { state });
    const wrong = [];
    let sum = 0;
    for (let at = 0; at < 300; at++) {
      step.inputs.x.fill(at % 7);
      sum += at % 7;
      if (at % 2 === 0) step.runSync();
      else await step.run();
      if (step.outputs.y.some((value) => value !== 2 * sum)) wrong.push(at);
    }
    const kept = numbers(await state.read('state'));
    await state.reset();
    return { wrong, steps: 300, sum, kept: kept[0], after: numbers(await state.read('state'))[0] };
  },
  async nonzero() {
    const session = await opened('nonzero');
    const inputs = [
      [0, 1, 0, 1],
      [0, 0, 0, 0],
      [1, 1, 1, 1],
    ];
    const outputs = await Promise.all(
      inputs.map((values) => session.run(new Map([['x', floats([4], values)]]))),
    );
    return {
      shapes: outputs.map((each) => each.get('y').shape),
      places: outputs.map((each) =>
        Array.from(new BigInt64Array(each.get('y').bytes.slice().buffer), Number),
      ),
      refusals: session.facts.cudaGraphFallbacks,
    };
  },
  async contexts() {
    const session = await opened('affine', { contexts: 3 });
    const outputs = await Promise.all(
      Array.from({ length: 30 }, (_, at) => session.run(new Map([['x', x(1 + (at % 5), at)]]))),
    );
    return { first: outputs.map((each) => numbers(each.get('y'))[0]) };
  },
  async pool() {
    const memory = new ActivationPool();
    const before = await freeOn(0);
    const affine = await open('affine', { memory, cudaGraph: 'always' });
    const state = await open('state', { memory });
    const bytes = [memory.bytes, memory.separateBytes];
    const kept = state.state({ state: 'state_out' });
    const step = await state.prepare({}, { state: kept });
    const call = await affine.prepare({ x: [3, 4] });
    const answers = [];
    for (let at = 1; at <= 3; at++) {
      answers.push(numbers((await affine.run(new Map([['x', x(2, at)]]))).get('y'))[0]);
      step.inputs.x.fill(at);
      if (at % 2 === 0) step.runSync();
      else await step.run();
      answers.push(step.outputs.y[0]);
      call.inputs.x.fill(at);
      call.runSync();
      answers.push(call.outputs.y[0]);
    }
    const first = affine.run(new Map([['x', x(2)]]));
    const busy = [
      await code(() => step.run()),
      await code(() => call.runSync()),
      await code(() => affine.run(new Map([['x', x(2)]]))),
    ];
    await first;
    const after = await code(() => step.run());
    const late = await code(() => open('large', { memory }));
    await affine.close();
    await state.close();
    const again = await open('large', { memory });
    const larger = memory.bytes;
    await again.close();
    return {
      bytes,
      answers,
      busy,
      after,
      late,
      larger,
      graph: call.cudaGraph,
      lost: before - (await freeOn(0)),
    };
  },
  async gpus() {
    const devices = [0, 1];
    const before = await Promise.all(devices.map(freeOn));
    const [first, second] = await Promise.all(devices.map((device) => open('state', { device })));
    const states = [first, second].map((session) => session.state({ state: 'state_out' }));
    const foreign = await refusal(() => first.prepare({}, { state: states[1] }));
    const steps = [
      await first.prepare({}, { state: states[0] }),
      await second.prepare({}, { state: states[1] }),
    ];
    const wrong = [];
    for (let at = 1; at <= 40; at++) {
      for (const [gpu, step] of steps.entries()) {
        step.inputs.x.fill(gpu + 1);
        if (at % 2 === gpu) step.runSync();
        else await step.run();
        if (step.outputs.y.some((value) => value !== 2 * at * (gpu + 1))) wrong.push([at, gpu]);
      }
    }
    const kept = await Promise.all(states.map(async (state) => numbers(await state.read('state'))[0]));
    const absent = await refusal(() => open('affine', { device: 2 }));
    const children = await Promise.all(
      devices.map((device) =>
        openSupervisedEngine(plan('affine'), { toolchain, requirePassport: false, device }),
      ),
    );
    const outputs = await Promise.all(
      children.map(async (child, gpu) => numbers((await child.run(new Map([['x', x(1, gpu)]]))).get('y'))[0]),
    );
    const backends = children.map(({ backend }) => backend);
    const totals = children.map(({ facts }) => facts.engine.gpuMemory.total);
    await Promise.all(children.map((child) => child.close()));
    await second.close();
    const alone = code(() => steps[0].runSync());
    await first.close();
    const left = (await Promise.all(devices.map(freeOn))).map((free, gpu) => free - before[gpu]);
    return { foreign, wrong, kept, absent, outputs, backends, totals, alone: await alone, left };
  },
  async rounds() {
    const rss = [];
    for (let round = 0; round < 60; round++) {
      const session = await open('affine');
      await session.run(new Map([['x', x(2)]]));
      const state = session.state({}, {});
      state.close();
      await session.close();
      if (round !== 20 && round !== 59) continue;
      await new Promise(setImmediate);
      globalThis.gc();
      rss.push(process.memoryUsage().rss);
    }
    return { grownMiB: (rss[1] - rss[0]) / 2 ** 20 };
  },
};

for (const name of process.argv.slice(4)) {
  try {
    say(name, await checks[name]());
  } catch (error) {
    say(name, { error: error.code ?? 'none', message: error.stack });
  }
  for (const session of sessions.splice(0)) await session.close();
}
