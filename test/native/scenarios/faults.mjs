// What fails on purpose: plans, memory, contexts, captures, runs, and wrong requests.
import { affine, contextOf, device, freeBytes, hosts, open, outcome, shape } from './workbench.mjs';

export const faults = {
  // Memory that runs short while closed calls' buffers are kept for others: they are let go, and the call is made.
  async pressure() {
    const engine = await open('affine');
    const context = await contextOf(engine);
    const kept = await affine(engine, { context, rows: 1, graph: false });
    kept.call.close();
    const bytes = 64 * 64 * 4;
    const free = await freeBytes();
    const used = engine.facts.gpuMemory.total - free;
    process.env.FAKE_GPU_BYTES = String(used + 2 * bytes - 256);
    const made = await outcome(() => affine(engine, { context, rows: 64, graph: false }));
    delete process.env.FAKE_GPU_BYTES;
    const { call, ...refusal } = made;
    if (call === undefined) return refusal;
    new Float32Array(call.buffer('x')).fill(3);
    call.runSync([], []);
    const y = new Float32Array(call.buffer('y'))[64 * 64 - 1];
    await engine.close().done;
    return { y };
  },

  async allocations() {
    const before = await freeBytes();
    const outcomes = [];
    for (let nth = 1; nth <= 12; nth++) {
      process.env.FAKE_ALLOCATION_FAILS = String(nth);
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
      // The first is of the library itself.
      if (nth === 2) outcomes.push(found.details);
    }
    delete process.env.FAKE_ALLOCATION_FAILS;
    return { outcomes, free: (await freeBytes()) - before };
  },

  async faults() {
    const found = {};
    const wishing = async (environment, attempt) => {
      Object.assign(process.env, environment);
      const result = await outcome(attempt);
      for (const name of Object.keys(environment)) delete process.env[name];
      return result;
    };
    found.load = await wishing({ FAKE_LOAD: 'fails' }, () => open('affine'));
    found.loadMemory = await wishing({ FAKE_LOAD: 'memory' }, () => open('affine'));
    found.forgotten = await wishing({ FAKE_LOAD: 'forgets' }, () => open('nonzero'));
    found.text = await outcome(() => open('text'));
    found.missing = await outcome(() => open('absent'));
    const lengths = Array.from({ length: 34 }, (_, bytes) => bytes);
    found.cut = await Promise.all(
      lengths.map((bytes) => outcome(() => open(`cut${bytes}`)).then(({ code }) => code)),
    );
    found.device = await outcome(() => open('affine', { device: 3 }));
    found.hostCode = await outcome(() => open('hostcode'));
    const allowed = await open('hostcode', { allowHostCode: true });
    await allowed.close().done;
    const engine = await open('affine');
    found.context = await wishing({ FAKE_CONTEXT: 'missing' }, () => contextOf(engine));
    found.contextMemory = await wishing({ FAKE_CONTEXT: 'memory' }, () => contextOf(engine));
    const context = await contextOf(engine);
    const refused = await wishing({ FAKE_CAPTURE: 'refused' }, async () => {
      const { call } = await affine(engine, { context });
      new Float32Array(call.buffer('x')).fill(1);
      call.runSync([], []);
      const first = new Float32Array(call.buffer('y'))[0];
      call.close();
      return [call.graph, call.graphFallback, first];
    });
    found.capture = refused;
    const { call } = await affine(engine, { context });
    new Float32Array(call.buffer('x')).fill(2);
    call.runSync([], []);
    found.afterCapture = [call.graph, new Float32Array(call.buffer('y'))[0]];
    const plain = (await affine(engine, { context, rows: 3, graph: false })).call;
    found.enqueue = await wishing({ FAKE_ENQUEUE: '1' }, () => plain.runSync([], []));
    found.enqueueAsync = await wishing({ FAKE_ENQUEUE: '1' }, () => plain.run([], []).done);
    found.prepare = await wishing({ FAKE_ENQUEUE: '1' }, () => affine(engine, { context, rows: 4 }));
    const astray = { FAKE_FAULT: '1' };
    const memory = engine.allocate(64);
    found.astray = [
      await wishing(astray, () => plain.runSync([], [])),
      await wishing(astray, () => plain.run([], []).done),
      await wishing(astray, () => affine(engine, { context, rows: 5 })),
      await wishing(astray, () => memory.read(0, 64).done),
      await wishing(astray, () => memory.write(new Uint8Array(64), 0).done),
    ];
    memory.close();
    found.pinned = await wishing({ FAKE_PINNED: 'none' }, () => affine(engine, { context, rows: 6 }));
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
        return [made.graph, made.graphFallback, streaming.facts.weightBudgetBytes];
      });
    }
    found.budgets = budgets;
    found.budget = await outcome(() => open('affine', { weightBudget: 100 }));
    found.noBudget = await outcome(() => open('affine', { weightBudget: 'automatic' }));
    return found;
  },
};
