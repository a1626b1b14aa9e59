// In what order runs are answered, and what is left of engines that close, are collected, or whose process or thread ends.
import { Worker } from 'node:worker_threads';
import { results } from './results.mjs';
import { affine, collect, contextOf, freeBytes, given, open, outcome, workbenchArgs } from './workbench.mjs';

export const lifetimes = {
  // Runs whose length jumps; the event loop turns all the while.
  async paces() {
    const engine = await open('affine');
    const { call } = await affine(engine, { graph: false });
    const x = new Float32Array(call.buffer('x'));
    const y = new Float32Array(call.buffer('y'));
    const paces = [];
    let turns = 0;
    for (const us of [100, 100, 30_000, 100, 2000, 2000, 2000, 8000, 8000, 8000, 100]) {
      process.env.FAKE_COMPUTE_US = String(us);
      let running = true;
      const turn = () => {
        turns++;
        if (running) setImmediate(turn);
      };
      setImmediate(turn);
      const started = performance.now();
      x.fill(us);
      await call.run([], []).done;
      running = false;
      paces.push({
        right: y[100] === 2 * us + 1,
        early: performance.now() - started < us / 1000,
      });
    }
    // Nothing is left that would keep the process, or this loop, awake: no turn but for the timers.
    const { loopCount } = performance.nodeTiming.uvMetricsInfo;
    await new Promise((resolve) => setTimeout(resolve, 200));
    const awake = performance.nodeTiming.uvMetricsInfo.loopCount - loopCount;
    await engine.close().done;
    // Over all runs together: a busy machine may leave out a whole one.
    return { paces, turned: turns > 2 * paces.length, rests: awake < 20 };
  },

  async order() {
    const engine = await open('affine');
    const { call } = await affine(engine);
    const seen = [];
    const jobs = Array.from({ length: 50 }, (_, i) => {
      const y = new Float32Array(128);
      const job = call.run([{ name: 'x', data: new Float32Array(128).fill(i) }], [{ name: 'y', data: y }]);
      return {
        job,
        done: job.done.then(
          () => seen.push((y[9] - 1) / 2),
          (error) => seen.push(error.code),
        ),
      };
    });
    jobs[49].job.cancel();
    const y = new Float32Array(128);
    call.runSync([{ name: 'x', data: new Float32Array(128).fill(100) }], [{ name: 'y', data: y }]);
    await Promise.all(jobs.map(({ done }) => done));
    jobs[3].job.cancel();
    await engine.close().done;
    return { seen, sync: y[0] };
  },

  async closing() {
    const before = await freeBytes();
    const closed = {};
    const engine = await open('affine');
    const { context, call } = await affine(engine);
    const x = new Float32Array(call.buffer('x'));
    const flying = Array.from({ length: 10 }, () => call.run([], []).done);
    call.close();
    call.close();
    closed.detached = x.length;
    closed.runs = (await Promise.allSettled(flying))
      .map(({ status }) => status)
      .filter((status) => status === 'fulfilled').length;
    closed.run = await outcome(() => call.run([], []).done);
    closed.buffer = await outcome(() => call.buffer('x'));
    const second = await affine(engine, { context });
    const flyingEngine = second.call.run([], []).done;
    const closings = [engine.close().done, engine.close().done, context.close().done];
    await Promise.all(closings);
    closed.flying = await outcome(flyingEngine);
    closed.prepare = await outcome(() => affine(engine, { context }));
    closed.context = await outcome(() => contextOf(engine));
    closed.second = await outcome(() => second.call.runSync([], []));
    closed.layers = await outcome(() => engine.layers().done);
    const third = await open('affine');
    const making = outcome(contextOf(third));
    await third.close().done;
    closed.making = await making;
    closed.allocate = await outcome(() => engine.allocate(4));
    second.call.close();
    closed.free = (await freeBytes()) - before;
    return closed;
  },

  async collected() {
    const before = await freeBytes();
    let buffer;
    await (async () => {
      for (let round = 0; round < 20; round++) {
        const engine = await open('affine');
        const { call } = await affine(engine);
        buffer = new Float32Array(call.buffer('y'));
        const memory = engine.allocate(1 << 16);
        await memory.write(new Uint8Array(100), 0).done;
        new Float32Array(call.buffer('x')).fill(round);
        await call.run([], []).done;
      }
    })();
    await collect();
    // A view outlives its call: the memory is there until the view is gone.
    const still = buffer[0];
    return { still, free: (await freeBytes()) - before };
  },

  async rounds() {
    const held = [];
    for (let round = 0; round < Number(given[0]); round++) {
      const engine = await open('affine');
      const { call } = await affine(engine);
      new Float32Array(call.buffer('x')).fill(round);
      await call.run([], []).done;
      if (new Float32Array(call.buffer('y'))[0] !== 2 * round + 1) throw new Error(`round ${round} is wrong`);
      if (round % 2 === 0) call.close();
      await engine.close().done;
      if (round % 100 === 99) {
        held.push({ free: engine.facts.gpuMemory.freeBefore, resident: process.memoryUsage.rss() });
      }
    }
    return held;
  },

  async aborts() {
    const engine = await open('affine');
    const { call } = await affine(engine, { graph: false });
    process.env.FAKE_RUN = 'aborts';
    await call.run([], []).done;
    return {};
  },

  // The process ends while runs are in flight.
  async exits() {
    const engine = await open('affine');
    const { call } = await affine(engine);
    for (let run = 0; run < 20; run++) void call.run([], []).done.catch(() => {});
    process.stdout.write(JSON.stringify({ result: 'left' }));
    if (given[0] === 'now') process.exit(0);
    return undefined;
  },

  // Threads of JavaScript with engines of their own, one of them ended in the middle.
  async threads() {
    const run = (mode) =>
      new Promise((resolve) => {
        const worker = new Worker(new URL('./play.mjs', import.meta.url), {
          argv: [...workbenchArgs, 'inside', mode],
          stdout: true,
        });
        if (mode === 'ended') worker.once('message', () => resolve(worker.terminate()));
        else worker.once('exit', resolve);
        worker.on('error', resolve);
      });
    const codes = await Promise.all([run('whole'), run('whole'), run('ended')]);
    const main = await results.runs();
    return { codes, main: main.results };
  },

  async inside() {
    const { parentPort } = await import('node:worker_threads');
    const engine = await open('affine');
    const { call } = await affine(engine);
    for (let run = 0; run < 100; run++) await call.run([], []).done;
    parentPort.postMessage('running');
    if (given[0] === 'ended') for (;;) await call.run([], []).done;
    return {};
  },
};
