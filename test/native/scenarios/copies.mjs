// Tensors on their way to the GPU and back: by several threads, past the caches, or used in place.
import { openEngineSession } from '../../../dist/engines/runtime/tensorrt/engine-session.js';
import {
  addon,
  collect,
  contextOf,
  folder,
  given,
  hosts,
  inferenceLibrary,
  open,
  outcome,
  shape,
  tick,
} from './workbench.mjs';

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

  // The caller gives its arrays away while runs are under way: what was in them when `run` was called counts, and nobody touches them afterwards.
  async givenAway() {
    const inner = Number(given[0]);
    const away = [];
    const take = (array) => away.push(structuredClone(array, { transfer: [array.buffer] }).length);
    const forget = async () => {
      away.length = 0;
      await collect();
    };
    const floats = (number, resizable = false) => {
      const bytes = 32 * inner;
      return new Float32Array(
        resizable ? new ArrayBuffer(bytes, { maxByteLength: 2 * bytes }) : new ArrayBuffer(bytes),
      ).fill(number);
    };
    const tensor = (array) => ({ dtype: 'float32', shape: [8, inner], bytes: new Uint8Array(array.buffer) });
    const session = await openEngineSession(`${folder}/large.plan`, {
      requirePassport: false,
      toolchain: {
        product: 'tensorrt',
        version: given[1],
        libraries: { inference: inferenceLibrary, parser: inferenceLibrary, plugins: null },
        trtexec: null,
        foundBy: 'test',
      },
      addon,
      cudaGraph: 'never',
    });
    await session.run(new Map([['x', tensor(floats(0))]]));
    const inputs = [];
    const outputs = [];
    for (let round = 0; round < 3; round++) {
      const running = [];
      for (let at = 0; at < 4; at++) {
        const x = floats(10 * round + at, at % 2 === 1);
        running.push(session.run(new Map([['x', tensor(x)]])));
        await tick();
        if (at % 2 === 1) x.buffer.resize(0);
        else take(x);
      }
      await forget();
      for (const found of await Promise.all(running)) {
        const y = new Float32Array(found.get('y').bytes.buffer);
        inputs.push(y.every((value) => value === y[0]) ? y[0] : 'mixed');
      }
      for (const spoil of [() => {}, take, (y) => y.buffer.resize(0)]) {
        // On a busy machine a run may be over before its array is spoilt: then it is run once more.
        for (let isLate = true, attempt = 0; isLate && attempt < 20; attempt++) {
          const y = floats(0, true);
          const into = new Map([['y', tensor(y)]]);
          let isOver = false;
          const run = session.run(new Map([['x', tensor(floats(round))]]), { outputs: into });
          const ending = outcome(
            run.then(() => {
              isOver = true;
              return y[8 * inner - 1];
            }),
          );
          await tick();
          isLate = isOver && spoil.length > 0;
          spoil(y);
          await forget();
          const found = await ending;
          if (!isLate) outputs.push(found);
        }
      }
    }
    await session.close();
    return { inputs, outputs: outputs.map((found) => found.code ?? found) };
  },

  // Device memory is written from what the bytes were when `write` was called.
  async givenAwayToMemory() {
    const engine = await open('state');
    const memory = engine.allocate(1 << 22);
    const bytes = new Uint8Array(1 << 22).fill(7);
    const writing = memory.write(bytes, 0).done;
    structuredClone(bytes, { transfer: [bytes.buffer] });
    await collect();
    await writing;
    const read = new Uint8Array(await memory.read(0, 1 << 22).done);
    memory.close();
    await engine.close().done;
    return read.every((value) => value === 7);
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
