// Engines that share their activations, with a real TensorRT on a real GPU, through dist/ and build/trtforge.node; one JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/pool.gpu.mjs
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { ActivationPool } from '../../dist/engines/runtime/tensorrt/activation-pool.js';
import { float32Values, floatTensor } from '../../dist/formats/tensor/tensor.js';
import { buildEngines, named, using } from './engines.mjs';
import { openChecks, refused } from './harness.mjs';

const checks = openChecks();
const { check, finish } = checks;
const { open } = await buildEngines(checks, ['wide', 'affine', 'branches']);

/** The same numbers each time. */
const inputOf = (session, seed) => {
  const inputs = session.inputs.map(({ name, shape, profiles }) => {
    const dims = shape.map((size, axis) => size ?? profiles[0].opt[axis]);
    const count = dims.reduce((product, size) => product * size, 1);
    const values = Float32Array.from({ length: count }, (_, at) => Math.sin(at * 0.37 + seed));
    return [name, floatTensor('float32', dims, values)];
  });
  return named(Object.fromEntries(inputs));
};
const answersOf = (outputs) => [...outputs].map(([name, tensor]) => [name, ...float32Values(tensor)]);

await check('engines in turn give the answers that they give alone, with graphs and without', async () => {
  const memory = new ActivationPool();
  const names = ['wide', 'affine', 'branches'];
  const alone = [];
  for (const name of names)
    await using(open(name), async (session) => {
      for (const seed of [1, 2, 3]) alone.push(answersOf(await session.run(inputOf(session, seed))));
    });
  for (const cudaGraph of ['never', 'always']) {
    const sessions = await Promise.all(names.map((name) => open(name, { memory, cudaGraph })));
    const [one, sum] = [memory.bytes, memory.separateBytes];
    const needs = sessions.map((session) => session.facts.engine.deviceMemoryBytes);
    assert.equal(one, Math.max(...needs));
    assert.equal(
      sum,
      needs.reduce((all, bytes) => all + bytes, 0),
    );
    const shared = names.map(() => []);
    for (const seed of [1, 2, 3])
      for (const [at, session] of sessions.entries())
        shared[at].push(answersOf(await session.run(inputOf(session, seed))));
    assert.deepEqual(shared.flat(), alone);
    for (const session of sessions) await session.close();
  }
  return { names };
});

await check('memory of the GPU: the largest in the place of the sum', async () => {
  const usedBy = async (options) => {
    const sessions = [];
    const first = await open('branches', options);
    const before = first.facts.engine.gpuMemory.freeAfter;
    sessions.push(first);
    for (let at = 0; at < 3; at++) sessions.push(await open('branches', options));
    for (const session of sessions) await session.run(inputOf(session, 1));
    const last = await open('affine');
    const after = last.facts.engine.gpuMemory.freeBefore;
    const need = first.facts.engine.deviceMemoryBytes;
    await last.close();
    for (const session of sessions) await session.close();
    return { used: before - after, need };
  };
  await usedBy({});
  const separate = await usedBy({});
  const shared = await usedBy({ memory: new ActivationPool() });
  // The driver hands out blocks of 2 MiB.
  assert.ok(
    separate.used - shared.used >= 3 * separate.need - 8 * 2 ** 21,
    JSON.stringify({ separate, shared }),
  );
  return { separate, shared };
});

await check('two at once are refused, and runs go on after it', async () => {
  const memory = new ActivationPool();
  await using(open('branches', { memory }), (branches) =>
    using(open('affine', { memory }), async (affine) => {
      const under = branches.run(inputOf(branches, 1));
      await refused('TF_SESSION_BUSY', /at once|another run/, affine.run(inputOf(affine, 1)));
      await under;
      await affine.run(inputOf(affine, 1));
      await refused('TF_SESSION_INPUT', /since its first run/, open('wide', { memory }));
    }),
  );
  return {};
});

finish();
