// The engine that is meant, on a GPU: its identity at every door that loads it, inputs as plain objects, and what a bench of it measures.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { openEngineSession, openSession, runFile, tensor } from '../../dist/index.js';
import { openChecks, programsIn, refused } from './harness.mjs';

const { check, finish, folder } = openChecks();
const { ran, trtforge } = programsIn(folder);
process.env.XDG_CACHE_HOME = join(folder, 'cache');
const model = join(folder, 'resnet50.onnx');
const engine = join(folder, 'r.engine');
const wrong = 'a'.repeat(64);
let identity = '';

await check('an engine is built, with a known answer', async () => {
  ran('build/examples/models/main.js', ['resnet50', '--size', 'tiny', '-o', model]);
  const built = trtforge([
    'build',
    model,
    '--batch',
    '1/2/4',
    '--target',
    'tensorrt',
    '--known-answer',
    '-o',
    engine,
  ]);
  identity = built.identity;
  assert.match(identity, /^[0-9a-f]{64}$/);
  return { identity: identity.slice(0, 12), builtMs: built.built?.ms };
});

await check('every verb takes its identity and rejects another', async () => {
  const verbs = [
    ['run', engine, '--inputs', 'random', '--seed', '1'],
    ['bench', engine, '--batch', '2', '--duration', '0.3', '--warm-up', '50'],
    ['verify', engine, '--against', model, '--samples', '2'],
    ['engine', 'check', engine],
  ];
  const codes = verbs.map((words) => {
    const right = trtforge([...words, '--identity', identity]);
    const other = trtforge([...words, '--identity', wrong], { codes: [2] });
    assert.equal(other.error.code, 'TF_PASSPORT_INVALID', words[0]);
    return [words[0], right.exitCode];
  });
  return { codes };
});

await check('the library takes plain objects, and the identity', async () => {
  const pixels = Float32Array.from({ length: 2 * 3 * 64 * 64 }, (_, at) => ((at * 37) % 101) / 101);
  const session = await openEngineSession(engine, { identity });
  const [{ name, shape }] = session.inputs;
  const [, channels, height, width] = shape;
  const sizes = [2, channels, height, width];
  const data = pixels.slice(
    0,
    sizes.reduce((a, b) => a * b),
  );
  const [first] = Object.values(Object.fromEntries(await session.run({ [name]: tensor(data, sizes) })));
  const mapped = await session.run(new Map([[name, tensor(data, sizes)]]));
  assert.deepEqual([...mapped.values()][0].data, first.data);
  await session.close();
  const other = await openSession(engine, { identity });
  const [second] = [...(await other.run({ [name]: tensor(data, sizes) })).values()];
  assert.deepEqual(second.data, first.data);
  await other.close();
  await refused('TF_PASSPORT_INVALID', /./, openEngineSession(engine, { identity: wrong }));
  const ranOnce = await runFile({
    file: engine,
    sources: [{ kind: 'random' }],
    seed: 3,
    shapes: { [name]: [4, ...sizes.slice(1)] },
    identity,
  });
  return { input: name, sizes, outputs: ranOnce.outputs.length };
});

await check('a bench measures at least its duration, on the clock of the GPU', async () => {
  const facts = [[], ['--graph'], ['--streams', '2']].map((more) => {
    const words = ['--batch', '2', '--duration', '1', '--warm-up', '200', '--percentile', '50'];
    const { runs } = trtforge(['bench', engine, ...words, ...more]);
    const [{ wallMs, qps, gpuMs, warmUpInferences }] = runs;
    assert.ok(wallMs >= 1000, `${wallMs} ms`);
    return { mode: more.join(' '), wallMs, qps, gpuMs: gpuMs.median, warmUpInferences };
  });
  return { facts };
});

finish();
