// Tensors on their way to the GPU and back: by several threads, past the caches, or used in place.
import { contextOf, given, hosts, open, shape } from './workbench.mjs';

export const copies = {
  async large() {
    const inner = Number(given[0]);
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
    const inner = Number(given[0]);
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

  async small() {
    const engine = await open('affine');
    const context = await contextOf(engine);
    const results = {};
    for (const smallTensors of ['copied', 'mapped', 'measured']) {
      const call = await context.prepare({
        shapes: [shape('x', [2, 64])],
        bindings: hosts('x', 'y'),
        graph: true,
        smallTensors,
      }).done;
      const x = new Float32Array(call.buffer('x'));
      const y = new Float32Array(call.buffer('y'));
      const given = [3, 5].map((number) => {
        x.fill(number);
        call.runSync([], []);
        return y[127];
      });
      const own = new Float32Array(128);
      await call.run([{ name: 'x', data: own.fill(7) }], [{ name: 'y', data: own }]).done;
      const started = performance.now();
      call.runSync([], []);
      const ms = performance.now() - started;
      results[smallTensors] = { graph: call.graph, given: [...given, own[0]], are: call.smallTensors, ms };
      call.close();
    }
    await engine.close().done;
    return results;
  },
};
