// What engines do over the stand-in libraries, a process each: node run-scenarios.mjs <addon wrapper> <addon> <library> <folder of plans> <scenario> [arguments]
// Prints what the scenario found, as JSON. Run with --expose-gc.
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

const [wrapper, addonPath, inferenceLibrary, folder, scenario, ...more] = process.argv.slice(2);
const { loadAddon } = await import(pathToFileURL(wrapper).href);
const addon = loadAddon(addonPath);

const open = (plan, request = {}) =>
  addon.openEngine(
    {
      inferenceLibrary,
      pluginLibrary: null,
      pluginPaths: [],
      planPath: `${folder}/${plan}.plan`,
      device: 0,
      allowHostCode: false,
      weightBudget: null,
      verbose: false,
      ...request,
    },
    () => {},
  ).done;
const shape = (name, dims, values = null) => ({ name, shape: dims, values });
const hosts = (...names) => names.map((name) => ({ name, kind: 'host' }));
const device = (name, memory, offset = 0) => ({ name, kind: 'device', memory, offset });
const outcome = async (attempt) => {
  try {
    const result = await (typeof attempt === 'function' ? attempt() : attempt);
    return result === undefined ? 'done' : result;
  } catch (error) {
    return { code: error.code, message: error.message, details: error.details };
  }
};
const contextOf = (engine, profile = 0, profiling = false) =>
  engine.createContext({ profile, profiling }).done;
const affine = async (engine, { rows = 2, graph = true, profile = 0, context } = {}) => {
  const made = context ?? (await contextOf(engine, profile));
  const call = await made.prepare({ shapes: [shape('x', [rows, 64])], bindings: hosts('x', 'y'), graph })
    .done;
  return { context: made, call };
};
const freeBytes = async () => {
  const engine = await open('affine');
  const { freeBefore } = engine.facts.gpuMemory;
  await engine.close().done;
  return freeBefore;
};
const tick = () => new Promise((resolve) => setImmediate(resolve));
const collect = async () => {
  for (let round = 0; round < 8; round++) {
    globalThis.gc();
    await tick();
  }
};

const scenarios = {
  async runs() {
    const engine = await open('affine');
    const { context, call } = await affine(engine);
    const x = new Float32Array(call.buffer('x'));
    const y = new Float32Array(call.buffer('y'));
    x.fill(3);
    call.runSync([], []);
    const pinned = y[127];
    x.fill(4);
    await call.run([], []).done;
    const later = y[0];
    const own = new Float32Array(128).fill(10);
    const out = new Float32Array(128);
    call.runSync([{ name: 'x', data: own }], [{ name: 'y', data: out }]);
    const copied = out[127];
    await call.run([{ name: 'x', data: own.fill(20) }], [{ name: 'y', data: out }]).done;
    const result = {
      facts: engine.facts,
      outputsFor: context.outputsFor([shape('x', [7, 64])]),
      prepared: [call.graph, call.graphRefusal, call.outputs],
      results: [pinned, later, copied, out[0]],
      layers: JSON.parse(await engine.layers().done),
      sameBuffer: call.buffer('x') === x.buffer,
    };
    await engine.close().done;
    return result;
  },

  async dtypes() {
    const found = {};
    for (const dtype of more.map(Number)) {
      const engine = await open(`copy${dtype}`);
      const context = await contextOf(engine);
      const call = await context.prepare({
        shapes: [shape('x', [3, 5])],
        bindings: hosts('x', 'y'),
        graph: true,
      }).done;
      const x = new Uint8Array(call.buffer('x')).map((_, index) => (index * 37) & 255);
      const y = new Uint8Array(x.length);
      call.runSync([{ name: 'x', data: x }], [{ name: 'y', data: y }]);
      found[dtype] = { bytes: x.length, same: Buffer.compare(x, y) === 0 };
      await engine.close().done;
    }
    return found;
  },

  async state() {
    const engine = await open('state');
    const context = await contextOf(engine);
    const bytes = 4 * 64 * 4;
    const memory = engine.allocate(4096 + 2 * bytes);
    const start = new Float32Array(256).fill(5);
    await memory.write(start, 1024).done;
    const shapes = [shape('x', [4, 64]), shape('state', [4, 64])];
    const call = (from, to) =>
      context.prepare({
        shapes,
        bindings: [...hosts('x', 'y'), device('state', memory, from), device('state_out', memory, to)],
        graph: true,
      }).done;
    const calls = [await call(1024, 2048), await call(2048, 1024)];
    const untouched = new Float32Array(await memory.read(1024, bytes).done)[255];
    for (let step = 0; step < 300; step++) {
      const one = calls[step % 2];
      if (step < 2) new Float32Array(one.buffer('x')).fill(1);
      one.runSync([], []);
    }
    const ended = new Float32Array(await memory.read(1024, bytes).done)[0];
    const y = new Float32Array(calls[1].buffer('y'))[0];
    const inPlace = await call(1024, 1024);
    new Float32Array(inPlace.buffer('x')).fill(1);
    inPlace.runSync([], []);
    const result = {
      untouched,
      ended,
      y,
      graphs: calls.map(({ graph }) => graph),
      inPlace: new Float32Array(await memory.read(1024, bytes).done)[0],
    };
    const refusals = {
      small: await outcome(call(1024, 4096 + 2 * bytes - 256)),
      misaligned: await outcome(call(1024, 2052)),
      outside: await outcome(() => memory.read(4096, 4 * bytes).done),
      unbound: await outcome(context.prepare({ shapes, bindings: hosts('x', 'y'), graph: true }).done),
      unknown: await outcome(context.prepare({ shapes, bindings: hosts('x', 'y', 'z'), graph: true }).done),
    };
    memory.close();
    memory.close();
    const closed = await outcome(() => memory.read(0, 4).done);
    calls[0].runSync([], []);
    await engine.close().done;
    return { ...result, refusals, closed };
  },

  async nonzero() {
    const engine = await open('nonzero');
    const context = await contextOf(engine);
    const prepare = (bindings) => context.prepare({ shapes: [shape('x', [6])], bindings, graph: true }).done;
    const call = await prepare(hosts('x', 'y'));
    const index = engine.facts.tensors[1].dtype === 8 ? BigInt64Array : Int32Array;
    const runs = [];
    for (const x of [
      [0, 1, 0, 2, 3, 0],
      [0, 0, 0, 0, 0, 0],
      [1, 1, 1, 1, 1, 1],
    ]) {
      call.runSync([{ name: 'x', data: new Float32Array(x) }], []);
      runs.push([call.lastShapes(), [...new index(call.readOutput('y'))].map(Number)]);
    }
    const memory = engine.allocate(16);
    const bound = await prepare([...hosts('x'), device('y', memory)]);
    bound.runSync([{ name: 'x', data: new Float32Array([0, 0, 9, 0, 0, 0]) }], []);
    const inMemory = new index(await memory.read(0, index.BYTES_PER_ELEMENT).done);
    const full = new Float32Array(6).fill(1);
    const result = {
      prepared: [call.graph, call.graphRefusal, call.outputs],
      runs,
      inMemory: Number(inMemory[0]),
      tooSmall: await outcome(() => bound.runSync([{ name: 'x', data: full }], [])),
      noBuffer: await outcome(() => call.buffer('y')),
      afterwards: await outcome(() => {
        call.runSync([{ name: 'x', data: full }], []);
        return call.lastShapes();
      }),
    };
    await engine.close().done;
    return result;
  },

  async shapes() {
    const engine = await open('shape');
    const context = await contextOf(engine);
    const prepare = (values) =>
      context.prepare({
        shapes: [shape('x', [1, 64]), shape('s', [2], values)],
        bindings: hosts('x', 'y'),
        graph: true,
      }).done;
    const call = await prepare([3, 5]);
    const other = await prepare([2, 64]);
    const x = Float32Array.from({ length: 64 }, (_, i) => i);
    const y = new Float32Array(15);
    call.runSync([{ name: 'x', data: x }], [{ name: 'y', data: y }]);
    const integers = engine.facts.tensors[1].dtype === 8 ? BigInt64Array : Int32Array;
    const wide = new Float32Array(128);
    other.runSync([{ name: 'x', data: x }], [{ name: 'y', data: wide }]);
    call.runSync([{ name: 'x', data: x }], [{ name: 'y', data: y.fill(0) }]);
    const result = {
      tensors: engine.facts.tensors.map(({ name, location, profiles }) => [name, location, profiles]),
      outputs: call.outputs,
      last: y[14],
      wide: wide[127],
      t: [...new integers(call.buffer('t'))].map(Number),
      few: await outcome(prepare([1])),
      none: await outcome(prepare(null)),
      outputsFor: await outcome(() => context.outputsFor([shape('x', [1, 64]), shape('s', [2], [9, 9])])),
      large: await outcome(prepare([2 ** 40, 1])),
    };
    await engine.close().done;
    return result;
  },

  async profiles() {
    const engine = await open('profiles');
    const first = await contextOf(engine, 0);
    const second = await contextOf(engine, 1);
    const again = await outcome(contextOf(engine, 0).then(() => 'made'));
    const beyond = await outcome(contextOf(engine, 2));
    const run = async (context, rows) => {
      const { call } = await affine(engine, { context, rows });
      new Float32Array(call.buffer('x')).fill(1);
      await call.run([], []).done;
      return new Float32Array(call.buffer('y'))[rows * 64 - 1];
    };
    const result = {
      again,
      beyond,
      both: await Promise.all([run(first, 4), run(second, 40)]),
      outside: await outcome(() => first.outputsFor([shape('x', [40, 64])])),
      outsidePrepared: await outcome(affine(engine, { context: first, rows: 40 })),
      afterwards: await run(first, 8),
      rank: await outcome(() => first.outputsFor([shape('x', [4])])),
      open: await outcome(first.prepare({ shapes: [], bindings: hosts('x', 'y'), graph: true }).done),
    };
    await engine.close().done;
    return result;
  },

  // Calls of one context in turns; a graph replayed after its context changed would give 0xEE.
  async turns() {
    const engine = await open('affine');
    const context = await contextOf(engine);
    const calls = [];
    for (const rows of [2, 5, 9])
      calls.push({ rows, ...(await affine(engine, { context, rows, graph: rows !== 5 })) });
    let wrong = 0;
    for (let round = 0; round < 60; round++) {
      const { call, rows } = calls[(round * 7) % 3];
      if (round % 5 === 0) context.outputsFor([shape('x', [3, 64])]);
      const x = new Float32Array(rows * 64).fill(round);
      const y = new Float32Array(rows * 64);
      for (let again = 0; again < 3; again++) {
        call.runSync([{ name: 'x', data: x }], [{ name: 'y', data: y.fill(0) }]);
        if (y.some((value) => value !== 2 * round + 1)) wrong++;
      }
    }
    await engine.close().done;
    return { wrong, graphs: calls.map(({ call }) => call.graph) };
  },

  async large() {
    const inner = Number(more[0]);
    const engine = await open('large');
    const context = await contextOf(engine);
    const prepare = (graph) =>
      context.prepare({ shapes: [shape('x', [8, inner])], bindings: hosts('x', 'y'), graph }).done;
    const wrong = [];
    for (const graph of [true, false]) {
      const call = await prepare(graph);
      const x = Float32Array.from({ length: 8 * inner }, (_, i) => i % 4099);
      const y = new Float32Array(8 * inner);
      const check = (what, factor = 1) => {
        for (let i = 0; i < y.length; i++)
          if (y[i] !== 2 * factor * (i % 4099) + 1) return wrong.push([graph, what, i, y[i]]);
        y.fill(0);
        return 0;
      };
      call.runSync([{ name: 'x', data: x }], [{ name: 'y', data: y }]);
      check('sync');
      await call.run([{ name: 'x', data: x.map((value) => 2 * value) }], [{ name: 'y', data: y }]).done;
      check('async', 2);
      new Float32Array(call.buffer('x')).set(x);
      call.runSync([], [{ name: 'y', data: y }]);
      check('pinned in');
      call.runSync([{ name: 'x', data: x }], []);
      y.set(new Float32Array(call.buffer('y')));
      check('pinned out');
    }
    await engine.close().done;
    return { wrong };
  },

  // Pieces that go past the caches, from memory that is aligned to nothing.
  async pastCaches() {
    const inner = Number(more[0]);
    const engine = await open('large');
    const context = await contextOf(engine);
    const call = await context.prepare({
      shapes: [shape('x', [64, inner])],
      bindings: hosts('x', 'y'),
      graph: true,
    }).done;
    const x = new Float32Array(64 * inner + 1).subarray(1);
    const wrong = [];
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < x.length; i++) x[i] = (i + round) % 4099;
      const y = new Float32Array(x.length);
      await call.run([{ name: 'x', data: x }], [{ name: 'y', data: y }]).done;
      const first = y.findIndex((value, i) => value !== 2 * x[i] + 1);
      if (first >= 0) wrong.push([round, first, y[first]]);
    }
    await engine.close().done;
    return { wrong };
  },

  // Runs whose length jumps: a loop that looks gives up and is woken, and turns all the while.
  async paces() {
    const engine = await open('affine');
    const { call } = await affine(engine, { graph: false });
    const x = new Float32Array(call.buffer('x'));
    const y = new Float32Array(call.buffer('y'));
    const paces = [];
    for (const us of [100, 100, 30_000, 100, 2000, 2000, 2000, 8000, 8000, 8000, 100]) {
      process.env.STANDIN_COMPUTE_US = String(us);
      let running = true;
      let turns = 0;
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
        turned: us < 2000 || turns > 10,
      });
    }
    // Nothing of the look is left that would keep the process, or this loop, awake.
    const before = process.cpuUsage();
    await new Promise((resolve) => setTimeout(resolve, 200));
    const { user, system } = process.cpuUsage(before);
    await engine.close().done;
    return { paces, rests: (user + system) / 200_000 < 0.5 };
  },

  async mapped() {
    const engine = await open('affine');
    const context = await contextOf(engine);
    const prepare = (mappedBytes) =>
      context.prepare({ shapes: [shape('x', [2, 64])], bindings: hosts('x', 'y'), graph: true, mappedBytes })
        .done;
    const results = {};
    for (const [name, mappedBytes] of Object.entries({ copied: 511, mapped: 512 })) {
      const call = await prepare(mappedBytes);
      const x = new Float32Array(call.buffer('x'));
      const y = new Float32Array(call.buffer('y'));
      const started = performance.now();
      const given = [3, 5].map((number) => {
        x.fill(number);
        call.runSync([], []);
        return y[127];
      });
      const own = new Float32Array(128);
      await call.run([{ name: 'x', data: own.fill(7) }], [{ name: 'y', data: own }]).done;
      results[name] = {
        graph: call.graph,
        given: [...given, own[0]],
        waitsForCopies: performance.now() - started > 30,
      };
      call.close();
    }
    await engine.close().done;
    return results;
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
    for (let round = 0; round < Number(more[0]); round++) {
      const engine = await open('affine');
      const { call } = await affine(engine);
      new Float32Array(call.buffer('x')).fill(round);
      await call.run([], []).done;
      if (new Float32Array(call.buffer('y'))[0] !== 2 * round + 1) throw new Error(`round ${round} is wrong`);
      if (round % 2 === 0) call.close();
      await engine.close().done;
      if (round % 50 === 49) {
        held.push({ free: engine.facts.gpuMemory.freeBefore, resident: process.memoryUsage.rss() });
      }
    }
    return held;
  },

  async allocations() {
    const before = await freeBytes();
    const outcomes = [];
    for (let nth = 1; nth <= 12; nth++) {
      process.env.STANDIN_ALLOCATION_FAILS = String(nth);
      const found = await outcome(async () => {
        const engine = await open('state');
        let memory;
        try {
          const context = await contextOf(engine);
          memory = engine.allocate(4096);
          const call = await context.prepare({
            shapes: [shape('x', [1, 64]), shape('state', [1, 64])],
            bindings: [...hosts('x', 'y'), device('state', memory), device('state_out', memory, 1024)],
            graph: true,
          }).done;
          call.runSync([], []);
        } finally {
          memory?.close();
          await engine.close().done;
        }
      });
      outcomes.push(found.code ?? found);
      if (nth === 1) outcomes.push(found.details);
    }
    delete process.env.STANDIN_ALLOCATION_FAILS;
    return { outcomes, free: (await freeBytes()) - before };
  },

  async faults() {
    const found = {};
    const wishing = async (wishes, attempt) => {
      Object.assign(process.env, wishes);
      const result = await outcome(attempt);
      for (const name of Object.keys(wishes)) delete process.env[name];
      return result;
    };
    found.load = await wishing({ STANDIN_LOAD: 'fails' }, () => open('affine'));
    found.loadMemory = await wishing({ STANDIN_LOAD: 'memory' }, () => open('affine'));
    found.text = await outcome(() => open('text'));
    found.missing = await outcome(() => open('absent'));
    found.device = await outcome(() => open('affine', { device: 3 }));
    found.hostCode = await outcome(() => open('hostcode'));
    const allowed = await open('hostcode', { allowHostCode: true });
    await allowed.close().done;
    const engine = await open('affine');
    found.context = await wishing({ STANDIN_CONTEXT: 'missing' }, () => contextOf(engine));
    found.contextMemory = await wishing({ STANDIN_CONTEXT: 'memory' }, () => contextOf(engine));
    const context = await contextOf(engine);
    const refused = await wishing({ STANDIN_CAPTURE: 'refused' }, async () => {
      const { call } = await affine(engine, { context });
      new Float32Array(call.buffer('x')).fill(1);
      call.runSync([], []);
      const first = new Float32Array(call.buffer('y'))[0];
      call.close();
      return [call.graph, call.graphRefusal, first];
    });
    found.capture = refused;
    const { call } = await affine(engine, { context });
    new Float32Array(call.buffer('x')).fill(2);
    call.runSync([], []);
    found.afterCapture = [call.graph, new Float32Array(call.buffer('y'))[0]];
    const plain = (await affine(engine, { context, rows: 3, graph: false })).call;
    found.enqueue = await wishing({ STANDIN_ENQUEUE: '1' }, () => plain.runSync([], []));
    found.enqueueAsync = await wishing({ STANDIN_ENQUEUE: '1' }, () => plain.run([], []).done);
    found.prepare = await wishing({ STANDIN_ENQUEUE: '1' }, () => affine(engine, { context, rows: 4 }));
    found.afterwards = await outcome(() => plain.runSync([], []));
    found.size = await outcome(() => plain.runSync([{ name: 'x', data: new Float32Array(5) }], []));
    found.name = await outcome(() => plain.runSync([{ name: 'z', data: new Float32Array(5) }], []));
    found.direction = await outcome(() => plain.runSync([], [{ name: 'x', data: new Float32Array(192) }]));
    await engine.close().done;
    const budgets = {};
    for (const [name, weightBudget] of [
      ['all', null],
      ['automatic', 'automatic'],
      ['bytes', 100],
    ]) {
      budgets[name] = await outcome(async () => {
        const streaming = await open('streaming', { weightBudget });
        const made = (await affine(streaming)).call;
        await streaming.close().done;
        return [made.graph, made.graphRefusal];
      });
    }
    found.budgets = budgets;
    found.budget = await outcome(() => open('affine', { weightBudget: 100 }));
    return found;
  },

  async layerTimes() {
    const engine = await open('affine');
    const context = await contextOf(engine, 0, true);
    const { call } = await affine(engine, { context });
    for (let run = 0; run < 4; run++) call.runSync([], []);
    const other = await contextOf(await open('affine'));
    const result = {
      times: context.layerTimes(),
      graph: [call.graph, call.graphRefusal],
      without: await outcome(() => other.layerTimes()),
    };
    await engine.close().done;
    return result;
  },

  async aborts() {
    const engine = await open('affine');
    const { call } = await affine(engine, { graph: false });
    process.env.STANDIN_RUN = 'aborts';
    await call.run([], []).done;
    return {};
  },

  // The process ends while runs are in flight.
  async exits() {
    const engine = await open('affine');
    const { call } = await affine(engine);
    for (let run = 0; run < 20; run++) void call.run([], []).done.catch(() => {});
    process.stdout.write(JSON.stringify({ result: 'left' }));
    if (more[0] === 'now') process.exit(0);
    return undefined;
  },

  // Threads of JavaScript with engines of their own, one of them ended in the middle.
  async threads() {
    if (more[0] === 'inside') return scenarios.inside();
    const run = (mode) =>
      new Promise((resolve) => {
        const worker = new Worker(new URL(import.meta.url), {
          argv: [wrapper, addonPath, inferenceLibrary, folder, 'inside', mode],
          stdout: true,
        });
        if (mode === 'ended') worker.once('message', () => resolve(worker.terminate()));
        else worker.once('exit', resolve);
        worker.on('error', resolve);
      });
    const codes = await Promise.all([run('whole'), run('whole'), run('ended')]);
    const main = await scenarios.runs();
    return { codes, main: main.results };
  },

  async inside() {
    const { parentPort } = await import('node:worker_threads');
    const engine = await open('affine');
    const { call } = await affine(engine);
    for (let run = 0; run < 100; run++) await call.run([], []).done;
    parentPort.postMessage('running');
    if (more[0] === 'ended') for (;;) await call.run([], []).done;
    return {};
  },
};

/** One scenario by its name, or several as JSON: `[[name, arguments, wishes], …]`, whose wishes hold while each runs. */
async function play() {
  if (!scenario.startsWith('[')) return await outcome(scenarios[scenario]);
  const found = {};
  for (const [name, args, wishes] of JSON.parse(scenario)) {
    more.splice(0, more.length, ...args);
    Object.assign(process.env, wishes);
    found[name] = await outcome(scenarios[name]);
    for (const wish of Object.keys(wishes)) delete process.env[wish];
  }
  return found;
}

const result = await play();
if (result !== 'done') process.stdout.write(JSON.stringify({ result }));
