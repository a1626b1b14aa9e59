// What engines give: values of every type, states, shapes that depend on data or on values, profiles, times of layers.
import { affine, contextOf, device, given, hosts, open, outcome, shape } from './workbench.mjs';

export const results = {
  async described() {
    const engine = await open('described', { pluginPaths: ['/plugins/a.so'] });
    const { facts } = engine;
    const { call } = await affine(engine, { profile: 1, rows: 40 });
    new Float32Array(call.buffer('x')).fill(3);
    call.runSync([], []);
    const ran = [call.graph, new Float32Array(call.buffer('y'))[0]];
    await engine.close().done;
    return { facts, ran };
  },

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
      prepared: [call.graph, call.graphFallback, call.outputs],
      results: [pinned, later, copied, out[0]],
      layers: JSON.parse(await engine.layers().done),
      sameBuffer: call.buffer('x') === x.buffer,
    };
    await engine.close().done;
    return result;
  },

  async dtypes() {
    const found = {};
    for (const dtype of given.map(Number)) {
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
      prepared: [call.graph, call.graphFallback, call.outputs],
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

  async layerTimes() {
    const engine = await open('affine');
    const context = await contextOf(engine, 0, true);
    const { call } = await affine(engine, { context });
    for (let run = 0; run < 4; run++) call.runSync([], []);
    const other = await contextOf(await open('affine'));
    const result = {
      times: context.layerTimes(),
      graph: [call.graph, call.graphFallback],
      without: await outcome(() => other.layerTimes()),
    };
    await engine.close().done;
    return result;
  },
};
