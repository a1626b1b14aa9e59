// What engines do with bad input and when something fails, with a real TensorRT on a real GPU, through dist/ and build/trtforge.node; one JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/faults.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { namedBuilder } from '../../dist/engines/builder/build-engine.js';
import { openEngineSession } from '../../dist/engines/runtime/tensorrt/engine-session.js';
import { loadEngine } from '../../dist/engines/runtime/tensorrt/load-engine.js';
import { float32Values, tensorFrom } from '../../dist/formats/tensor/tensor.js';
import { assertAffine, buildEngines, floats, named, rows, using, WIDTH } from './engines.mjs';
import { openChecks, refused, resolvedBuild, writeLayers } from './harness.mjs';

const checks = openChecks();
const { toolchain, major, folder, check, skip, finish } = checks;
const ROUNDS = 1000;
/** Rounds after which libraries have loaded what they load once. */
const SETTLED = 200;
const MOST_GROWN_MIB = 32;
const { open, plan, supervised } = await buildEngines(checks, ['affine', 'wide']);

// ---- bad input

await check('a shape outside every profile is our sentence, before the call', () =>
  using(open('affine'), async (session) => {
    const attempt = session.run(named({ x: rows(65) }));
    return refused(
      'TF_PROFILE_MISFIT',
      /profile 0 takes \[1\.\.8, 64\], profile 1 takes \[4\.\.64, 64\]/,
      attempt,
    );
  }),
);

await check('wrong dtype, rank, bytes and names', () =>
  using(open('affine'), async (session) => {
    const wrong = [
      { x: tensorFrom('int32', [1, WIDTH], new Int32Array(WIDTH)) },
      { x: floats([WIDTH], () => 0) },
      { x: floats([1, WIDTH + 1], () => 0) },
      { x: { dtype: 'float32', shape: [1, WIDTH], bytes: new Uint8Array(4) } },
      { z: rows(1) },
      {},
    ];
    for (const tensors of wrong) await refused('TF_SESSION_INPUT', /./, session.run(named(tensors)));
    assertAffine(await session.run(named({ x: rows(1) })), rows(1));
  }),
);

const spoilt = (name, change) => {
  const path = join(folder, name);
  writeFileSync(path, change(readFileSync(plan('affine'))));
  return path;
};

await check('text, a foreign header and another version never reach the library', async () => {
  const refuse = (code, text, path) =>
    refused(code, text, openEngineSession(path, { toolchain, requirePassport: false }));
  const header = (bytes) => {
    const json = Buffer.from(JSON.stringify({ description: 'Ultralytics YOLO' }));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(json.length);
    return Buffer.concat([length, json, bytes]);
  };
  const version = (bytes) =>
    Buffer.concat([bytes.subarray(0, 24), Buffer.of(9, 9, 9, 9), bytes.subarray(28)]);
  await refuse(
    'TF_PLAN_INVALID',
    /not a TensorRT plan/,
    spoilt('text.engine', () => 'this is text '.repeat(100)),
  );
  await refuse(
    'TF_PLAN_INVALID',
    /cut short/,
    spoilt('short.engine', (bytes) => bytes.subarray(0, 20)),
  );
  await refuse('TF_ENGINE_VERSION_MISMATCH', /9\.9\.9\.9/, spoilt('other.engine', version));
  return refuse('TF_PLAN_FOREIGN_HEADER', /Ultralytics/, spoilt('foreign.engine', header));
});

await check('a plan cut in the middle ends as an error, whatever the library does', async () => {
  const path = spoilt('half.engine', (bytes) => bytes.subarray(0, bytes.length >> 1));
  const error = await supervised(path).then(
    (session) => session.close().then(() => assert.fail('an error was expected')),
    (reason) => reason,
  );
  assert.ok(['TF_PLAN_LOAD_FAILED', 'TF_CHILD_DIED'].includes(error.code), error.message);
  return { code: error.code, message: error.message.split('\n')[0] };
});

await check('a library that has disappeared', () => {
  const inference = join(folder, 'libnvinfer.so.99');
  const gone = { ...toolchain, libraries: { ...toolchain.libraries, inference } };
  return refused('TF_LIBRARY_LOAD_FAILED', /libnvinfer\.so\.99/, open('affine', { toolchain: gone }));
});

await check('a plug-in library that is not there', () =>
  refused('TF_FILE_NOT_FOUND', /gone\.so/, open('affine', { plugins: [join(folder, 'gone.so')] })),
);

await check('no GPU to be seen: CUDA_VISIBLE_DEVICES is empty', () =>
  refused(
    'TF_GPU_UNAVAILABLE',
    /shows none: .*CUDA_VISIBLE_DEVICES is empty/,
    supervised('affine', { environment: { ...process.env, CUDA_VISIBLE_DEVICES: '' } }),
  ),
);

await check('a GPU that is not there', () =>
  refused('TF_GPU_UNAVAILABLE', /no GPU 99/, open('affine', { device: 99 })),
);

// ---- faults

/** Takes the GPU's memory down to pieces of `smallest` bytes while `work` goes on. */
async function withoutMemory(smallest, work) {
  const { native } = await loadEngine(plan('affine'), { toolchain, requirePassport: false });
  const taken = [];
  let bytes = 0;
  try {
    for (let piece = 64 * 2 ** 30; piece >= smallest; ) {
      try {
        taken.push(native.allocate(piece));
        bytes += piece;
      } catch {
        piece = Math.floor(piece / 2);
      }
    }
    return { takenGiB: Math.round(bytes / 2 ** 30), ...(await work()) };
  } finally {
    for (const memory of taken) memory.close();
    await native.close().done;
  }
}

await check('memory exhausted while an engine loads', () =>
  withoutMemory(1 << 20, () => refused('TF_GPU_MEMORY', /free/, open('wide'))),
);

await check('memory exhausted while a call is prepared, and the session goes on when there is some', () =>
  using(open('wide'), async (session) => {
    const facts = await withoutMemory(1 << 20, () =>
      refused('TF_GPU_MEMORY', /free/, session.prepare({ x: [65536, 2048] })),
    );
    const outputs = await session.run(named({ x: floats([2, 2048], () => 0) }));
    assert.ok(float32Values(outputs.get('y')).every((each) => each === 0 || process.env.RUN_PLANS));
    return facts;
  }),
);

const { trtexec } = toolchain;
const starving = writeLayers(folder, 'starving', 2, 2048);
for (const builder of ['native', 'trtexec']) {
  for (const smallest of [1 << 30, 256 << 20, 1 << 20]) {
    const name = `memory exhausted while ${builder} builds, less than ${smallest >> 20} MiB free`;
    if (builder === 'trtexec' && (trtexec === null || !existsSync(trtexec))) {
      skip(name, 'TRTEXEC names no trtexec');
      continue;
    }
    await check(name, () =>
      withoutMemory(smallest, () => {
        const recipe = {
          stronglyTyped: major >= 10,
          profiles: [{ x: { min: [1, 2048], opt: [65536, 2048], max: [65536, 2048], values: false } }],
        };
        const more = { builder, logFolder: join(folder, 'logs') };
        const building = namedBuilder(
          resolvedBuild(toolchain, starving, recipe, more),
          { modelPath: starving, planPath: join(folder, 'starved.engine') },
          { emit: () => {} },
        );
        return refused('TF_GPU_MEMORY', /memory|room/, building);
      }),
    );
  }
}

await check('an abort: before, in the queue, in a child', async () => {
  await using(open('affine'), async (session) => {
    const inputs = named({ x: rows(8) });
    await session.run(inputs);
    const cancelled = (signal) => refused('TF_CANCELLED', /ancelled/, session.run(inputs, { signal }));
    await cancelled(AbortSignal.abort());
    const stopping = new AbortController();
    const others = Array.from({ length: 50 }, () => session.run(inputs));
    const last = cancelled(stopping.signal);
    stopping.abort();
    await last;
    await Promise.all(others);
    assertAffine(await session.run(inputs), rows(8));
  });
  return using(supervised('affine'), async (session) => {
    const stopping = new AbortController();
    const run = session.runRepeatedly(named({ x: rows(8) }), {
      iterations: 100_000_000,
      signal: stopping.signal,
    });
    setTimeout(() => stopping.abort(), 300);
    return refused('TF_CANCELLED', /ancelled/, run);
  });
});

/** Processes that this one has started and that are still there: the fourth field of a process's `stat` is its parent. */
const children = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ');
        return Number(fields[1]) === process.pid;
      } catch {
        return false;
      }
    });

await check('a child that is killed is an error with the signal', async () => {
  const before = new Set(children());
  const session = await supervised('affine');
  const [child] = children().filter((pid) => !before.has(pid));
  assert.ok(child !== undefined, 'the child was not found under /proc');
  const run = session.runRepeatedly(named({ x: rows(8) }), { iterations: 100_000_000 });
  setTimeout(() => process.kill(Number(child), 'SIGKILL'), 300);
  const facts = await refused('TF_CHILD_DIED', /SIGKILL/, run);
  await session.close();
  return facts;
});

await check('1,000 load, run, dispose rounds leave memory where it was', async () => {
  const input = named({ x: rows(4) });
  const marks = [];
  const started = performance.now();
  for (let round = 0; round <= ROUNDS; round++) {
    await using(open('affine'), async (session) => {
      if (round === SETTLED || round === ROUNDS) {
        globalThis.gc?.();
        marks.push({
          rss: process.memoryUsage().rss,
          free: session.facts.engine.gpuMemory.freeBefore,
        });
      }
      assertAffine(await session.run(input), rows(4));
    });
  }
  const [settled, last] = marks;
  const facts = {
    rounds: ROUNDS,
    msPerRound: Math.round((performance.now() - started) / ROUNDS),
    rssMiB: [settled.rss, last.rss].map((bytes) => Math.round(bytes / 2 ** 20)),
    rssGrownMiB: Math.round((last.rss - settled.rss) / 2 ** 20),
    gpuGrownMiB: Math.round((settled.free - last.free) / 2 ** 20),
  };
  assert.ok(
    facts.rssGrownMiB <= MOST_GROWN_MIB && facts.gpuGrownMiB <= MOST_GROWN_MIB,
    JSON.stringify(facts),
  );
  return facts;
});

skip(
  'an engine of another compute capability',
  'it takes a second GPU; the passport check is tested without one',
);

finish();
