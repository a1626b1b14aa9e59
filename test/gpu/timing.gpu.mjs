// Timing caches in a store that machines share: a build starts with the kernel times of another, those of two stores are merged by the library itself, and what the
// library rejects is used once. Prints how long each build takes cold and warm. One JSON line per check.
//
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/timing.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { initializer, openChecks, programsIn, value, writeModel } from './harness.mjs';

const { folder, check, finish } = openChecks();
const { trtforge } = programsIn(folder);
const at = (...names) => join(folder, ...names);
const FLOAT = 1;
const KIND_INTS = 7;

/** Convolutions of these widths over pictures of 64 x 64. */
function convolutions(name, widths) {
  const pads = ['kernel_shape', 'pads'].map((attribute, index) => ({
    name: attribute,
    type: KIND_INTS,
    ints: (index === 0 ? [3, 3] : [1, 1, 1, 1]).map(BigInt),
  }));
  const sizes = [3, ...widths];
  const weights = widths.map((width, index) => [width, sizes[index], 3, 3]);
  return writeModel(folder, name, {
    inputs: [value('x', FLOAT, [8, 3, 64, 64])],
    outputs: [value('y', FLOAT, [8, widths.at(-1), 64, 64])],
    initializers: weights.map((dims, index) => {
      const count = dims.reduce((product, size) => product * size);
      return initializer(
        `w${index}`,
        FLOAT,
        dims,
        Float32Array.from({ length: count }, (_, i) => ((i % 7) - 3) / 50),
      );
    }),
    nodes: widths.flatMap((_, index) => {
      const [from, to] = [
        index === 0 ? 'x' : `r${index - 1}`,
        index === widths.length - 1 ? 'y' : `r${index}`,
      ];
      return [
        {
          opType: 'Conv',
          name: `conv${index}`,
          input: [from, `w${index}`],
          output: [`c${index}`],
          attribute: pads,
        },
        { opType: 'Relu', name: `relu${index}`, input: [`c${index}`], output: [to], attribute: [] },
      ];
    }),
  });
}

/** Builds on a machine (a home of its own) with a store; gives what the passport states. */
function build(model, store, machine, ...more) {
  const words = [
    'build',
    model,
    '--target',
    'tensorrt',
    '--cache-dir',
    at(store),
    '--remote',
    'none',
    ...more,
  ];
  const { engine, warnings } = trtforge(words, { env: { XDG_CACHE_HOME: at(machine) } });
  const { timingCache, ms } = JSON.parse(readFileSync(`${engine}.passport.json`, 'utf8')).built;
  return { use: timingCache, ms: Math.round(ms), warnings };
}

/** Files of the only scope of a store. */
function files(store, end = '.timing') {
  const [scope, ...others] = readdirSync(at(store, 'timing'));
  assert.deepEqual(others, []);
  const names = readdirSync(at(store, 'timing', scope)).filter((name) => name.endsWith(end));
  return names.map((name) => at(store, 'timing', scope, name));
}
const bytesOf = (store) => files(store).map((path) => statSync(path).size);
/** Another recipe with the same kernels: no engine of the store serves, all times do. */
const OTHER = ['--builder-config', 'max-aux-streams=0'];

const [first, second] = [convolutions('first', [32, 64, 48]), convolutions('second', [24, 96, 40])];

await check('a build on another machine starts with the kernel times of the first', () => {
  const cold = build(first, 'shared', 'one');
  const warm = build(first, 'shared', 'two', ...OTHER);
  assert.deepEqual([cold.use, warm.use], ['new', 'hit']);
  assert.ok(warm.ms < cold.ms);
  assert.equal(files('shared').length, 1);
  return { coldMs: cold.ms, warmMs: warm.ms, share: warm.ms / cold.ms, bytes: bytesOf('shared') };
});

await check('those of two stores are merged, and both models are warm', () => {
  const cold = build(second, 'other', 'two');
  assert.equal(cold.use, 'new');
  const before = [...bytesOf('shared'), ...bytesOf('other')];
  cpSync(at('other', 'timing'), at('shared', 'timing'), { recursive: true });
  assert.equal(files('shared').length, 2);
  const warm = build(second, 'shared', 'one', ...OTHER);
  assert.deepEqual([warm.use, warm.warnings.filter((text) => text.includes('iming cache'))], ['hit', []]);
  assert.ok(warm.ms < cold.ms);
  assert.deepEqual([files('shared').length, files('shared', '.rejected')], [1, []]);
  const [merged] = bytesOf('shared');
  assert.ok(merged > Math.max(...before), `${merged} bytes of ${before}`);
  return { coldMs: cold.ms, warmMs: warm.ms, share: warm.ms / cold.ms, before, merged };
});

await check('a cache of garbage is rejected once, then gone', () => {
  cpSync(at('shared', 'timing'), at('spoilt', 'timing'), { recursive: true });
  const [sound] = files('spoilt');
  const garbage = 'of another version';
  const sha256 = createHash('sha256').update(garbage).digest('hex');
  const bad = sound.replace(/[0-9a-f]{64}/, sha256);
  const facts = { ...JSON.parse(readFileSync(`${sound}.json`, 'utf8')), sha256, bytes: garbage.length };
  for (const path of [sound, `${sound}.json`]) rmSync(path);
  writeFileSync(bad, garbage);
  writeFileSync(`${bad}.json`, JSON.stringify(facts));
  const small = convolutions('small', [8]);
  const rejected = build(small, 'spoilt', 'one');
  assert.equal(rejected.use, 'rejected');
  assert.deepEqual(files('spoilt', '.rejected'), [`${bad}.rejected`]);
  // A library that finds it when it reads it measures into a new one; one that finds it while it builds stores nothing.
  const left = files('spoilt');
  assert.ok(!left.includes(bad));
  const next = build(small, 'spoilt', 'one', ...OTHER);
  assert.equal(next.use, left.length === 0 ? 'new' : 'hit');
  assert.equal(files('spoilt').length, 1);
  return { rejectedMs: rejected.ms, nextMs: next.ms, next: next.use };
});

finish();
