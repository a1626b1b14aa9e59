// Engines on two GPUs of one process: each works and lets go on its own, whichever GPU the thread worked on last. One thread of the pool does all jobs.
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import {
  affine,
  device as bound,
  build,
  collect,
  contextOf,
  freeBytes,
  given,
  hosts,
  measure,
  open,
  outcome,
  shape,
  workbenchArgs,
} from './workbench.mjs';

const BOTH = [0, 1];
const freeOnBoth = () => Promise.all(BOTH.map(freeBytes));
const gainSince = async (before) => (await freeOnBoth()).map((free, gpu) => free - before[gpu]);

/** Runs a call once; gives the last number of y. */
function once(call, number) {
  new Float32Array(call.buffer('x')).fill(number);
  call.runSync([], []);
  return new Float32Array(call.buffer('y')).at(-1);
}

/** An engine of GPU 0, and what makes that GPU current on this thread and on the pool's. */
async function elsewhere() {
  const engine = await open('affine', { device: 0 });
  const { call } = await affine(engine);
  const work = async () => {
    once(call, 1);
    await engine.layers().done;
  };
  return { work, close: () => engine.close().done };
}

export const gpus = {
  async atOnce() {
    const before = await freeOnBoth();
    const engines = await Promise.all(BOTH.map((device) => open('affine', { device })));
    const calls = await Promise.all(engines.map(async (engine) => (await affine(engine)).call));
    const wrong = [];
    await Promise.all(
      calls.map(async (call, gpu) => {
        const x = new Float32Array(call.buffer('x'));
        const y = new Float32Array(call.buffer('y'));
        for (let run = 0; run < 100; run++) {
          x.fill(1000 * gpu + run);
          if (run % 3 === 0) call.runSync([], []);
          else await call.run([], []).done;
          if (y[127] !== 2 * (1000 * gpu + run) + 1) wrong.push([gpu, run, y[127]]);
        }
      }),
    );
    const memory = engines[1].allocate(2 ** 20);
    const [here, there] = await gainSince(before);
    memory.close();
    await engines[1].close().done;
    const alone = once(calls[0], 5);
    await engines[0].close().done;
    return {
      totals: engines.map(({ facts }) => facts.gpuMemory.total),
      graphs: calls.map(({ graph }) => graph),
      wrong,
      takes: [-here > 2 ** 10 && -here < 2 ** 20, -there > 2 ** 20],
      alone,
      left: await gainSince(before),
    };
  },

  // Every export that works on the GPU, each after work on the other one.
  async exports() {
    const before = await freeOnBoth();
    const zero = await elsewhere();
    const found = {};
    const step = async (name, work) => {
      await zero.work();
      found[name] = await outcome(work);
      return found[name];
    };
    const kept = {};
    const keep = (name, work) =>
      step(name, async () => {
        kept[name] = await work();
      });
    const shapes = [shape('x', [2, 64])];
    await keep('open', () => open('affine', { device: 1 }));
    await keep('context', () => contextOf(kept.open));
    await step('outputsFor', () => kept.context.outputsFor(shapes)[0].bytes);
    for (const [name, request] of [
      ['plain', { graph: false }],
      ['graph', { graph: true }],
      ['mapped', { graph: true, smallTensors: 'mapped' }],
      ['measured', { graph: true, smallTensors: 'measured' }],
    ]) {
      await keep(
        name,
        () =>
          kept.context.prepare({ shapes, bindings: hosts('x', 'y'), smallTensors: 'copied', ...request })
            .done,
      );
      await step(`${name} runs`, () => once(kept[name], 3));
      await step(`${name} runs later`, async () => {
        new Float32Array(kept[name].buffer('x')).fill(4);
        await kept[name].run([], []).done;
        return new Float32Array(kept[name].buffer('y'))[0];
      });
    }
    await keep('memory', () => kept.open.allocate(1024));
    await step('write', () => kept.memory.write(new Float32Array(256).fill(6), 0).done);
    await step('read', async () => new Float32Array(await kept.memory.read(0, 1024).done)[255]);
    const bindings = [bound('x', kept.memory), bound('y', kept.memory, 512)];
    await keep('onDevice', () => kept.context.prepare({ shapes, bindings, graph: true }).done);
    await step('onDevice runs', async () => {
      kept.onDevice.runSync([], []);
      return new Float32Array(await kept.memory.read(512, 512).done)[0];
    });
    await keep('places', async () => {
      const engine = await open('nonzero', { device: 1 });
      const context = await contextOf(engine);
      const call = await context.prepare({
        shapes: [shape('x', [6])],
        bindings: hosts('x', 'y'),
        graph: true,
      }).done;
      return { engine, call };
    });
    await step('places are found', () => {
      new Float32Array(kept.places.call.buffer('x')).set([0, 1, 0, 2, 3, 0]);
      kept.places.call.runSync([], []);
      return kept.places.call.lastShapes()[0].shape;
    });
    await step('places are read', () => kept.places.call.readOutput('y').byteLength > 0);
    await step('places go', () => kept.places.engine.close().done);
    await step('layers', async () => (await kept.open.layers().done).length > 0);
    // On 8.6 a profile of open dimensions serves one context, and these take several.
    await keep('fixed', () => open('fixed', { device: 1 }));
    await step('layer times', async () => {
      const context = await contextOf(kept.fixed, 0, true);
      const { call } = await affine(kept.fixed, { context, graph: false });
      once(call, 1);
      return context.layerTimes().length;
    });
    const inputs = [{ name: 'x', data: new Uint8Array(512) }];
    const mode = { profile: 0, shapes, inputs, warmUpMs: 0, durationMs: 0, iterations: 5, idleMs: 0 };
    for (const threads of [false, true])
      for (const transfers of [false, true])
        await step(
          `measure ${threads ? 'apart' : 'together'} ${transfers ? 'with' : 'without'} transfers`,
          async () => {
            const more = { streams: 2, threads, transfers, graph: true, spinWait: threads };
            const { gpuMemory, graph } = await measure(kept.fixed, { ...mode, ...more });
            return [gpuMemory.total, graph];
          },
        );
    await step('call goes', () => kept.graph.close());
    await step('memory goes', () => kept.memory.close());
    await step('context goes', () => kept.context.close().done);
    await step('engine goes', () => kept.open.close().done);
    await step('fixed goes', () => kept.fixed.close().done);
    await zero.close();
    // A call whose handle was collected before it closed leaves its pinned memory to the next collection.
    await collect();
    return { found, left: await gainSince(before) };
  },

  // Large tensors: threads of copying that all GPUs share, and graphs of what follows the copies.
  async largeOnes() {
    const before = await freeOnBoth();
    const inner = Number(given[0]);
    const made = [];
    for (const device of BOTH) {
      const engine = await open('large', { device });
      const context = await contextOf(engine);
      const request = { shapes: [shape('x', [8, inner])], bindings: hosts('x', 'y'), graph: true };
      made.push({ engine, call: await context.prepare(request).done });
    }
    const wrong = [];
    for (let round = 0; round < 6; round++) {
      const { call } = made[round % 2];
      const x = new Float32Array(8 * inner).fill(round);
      const y = new Float32Array(8 * inner);
      const words = [[{ name: 'x', data: x }], [{ name: 'y', data: y }]];
      if (round < 4) await call.run(...words).done;
      else call.runSync(...words);
      const first = y.findIndex((value) => value !== 2 * round + 1);
      if (first >= 0) wrong.push([round, first, y[first]]);
    }
    await Promise.all(made.map(({ engine }) => engine.close().done));
    return { wrong, left: await gainSince(before) };
  },

  async collectedOnBoth() {
    const before = await freeOnBoth();
    const zero = await elsewhere();
    await (async () => {
      for (let round = 0; round < 10; round++) {
        const engine = await open(round % 2 === 0 ? 'affine' : 'large', { device: 1 });
        const { call } = round % 2 === 0 ? await affine(engine) : {};
        const memory = engine.allocate(1 << 16);
        await memory.write(new Uint8Array(100), 0).done;
        if (call !== undefined) await call.run([], []).done;
      }
    })();
    await zero.work();
    await collect();
    const still = await gainSince(before);
    await zero.close();
    return { others: still[1], left: await gainSince(before) };
  },

  // A thread of JavaScript with an engine on GPU 1 ends, by itself or in the middle, while this one works on GPU 0.
  async threadsOnBoth() {
    const before = await freeOnBoth();
    const zero = await elsewhere();
    const codes = [];
    for (const mode of ['whole', 'ended']) {
      const worker = new Worker(new URL('./play.mjs', import.meta.url), {
        argv: [...workbenchArgs, 'insideOne', mode],
        stdout: true,
      });
      const over = new Promise((resolve) => worker.once('exit', resolve));
      await new Promise((resolve) => worker.once('message', resolve));
      await zero.work();
      if (mode === 'ended') await worker.terminate();
      codes.push(await over);
    }
    await zero.close();
    return { codes, left: await gainSince(before) };
  },

  async insideOne() {
    const { parentPort } = await import('node:worker_threads');
    const engine = await open('affine', { device: 1 });
    const { call } = await affine(engine);
    for (let run = 0; run < 50; run++) await call.run([], []).done;
    parentPort.postMessage('running');
    if (given[0] === 'ended') for (;;) await call.run([], []).done;
    return {};
  },

  // Builds use the first GPU that is visible, also on a thread that worked on the other.
  async builds() {
    const engine = await open('affine', { device: 1 });
    await engine.layers().done;
    await build();
    await engine.close().done;
    const calls = readFileSync(process.env.FAKE_CALLS, 'utf8').split('\n');
    return calls.findLast((call) => call.startsWith('builds on'));
  },

  async refusals() {
    const before = await freeOnBoth();
    const engines = await Promise.all(BOTH.map((device) => open('state', { device })));
    const contexts = await Promise.all(engines.map((engine) => contextOf(engine)));
    const memories = engines.map((engine) => engine.allocate(1024));
    const shapes = [shape('x', [1, 64]), shape('state', [1, 64])];
    const prepare = (gpu, memory) => {
      const bindings = [...hosts('x', 'y'), bound('state', memory), bound('state_out', memory, 512)];
      return contexts[gpu].prepare({ shapes, bindings, graph: true }).done;
    };
    const found = {
      absent: await outcome(open('affine', { device: 2 })),
      foreign: await outcome(prepare(0, memories[1])),
      foreignToo: await outcome(prepare(1, memories[0])),
      // GPU 0 has room for it, and GPU 1 has not.
      room: await outcome(() => engines[1].allocate(2 ** 33)),
      run: await outcome(async () => once(await prepare(1, memories[1]), 4)),
    };
    await Promise.all(engines.map((engine) => engine.close().done));
    for (const memory of memories) memory.close();
    return { ...found, left: await gainSince(before) };
  },
};
