// That work asked of the second GPU is done there and nowhere else, with a real TensorRT on two real GPUs; prints one JSON line per check.
//
//   npm run build && npm run build:native && npm run build:examples
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/two-gpus.gpu.mjs      (TRTEXEC=/tmp/tensorrt/bin/trtexec for the part with trtexec)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here. With one GPU every check is skipped by name.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { float32Values } from '../../dist/formats/tensor/tensor.js';
import { assertAffine, buildEngines, named, rows, using, WIDTH } from './engines.mjs';
import { openChecks, programsIn, refused } from './harness.mjs';

const checks = openChecks();
const { addon, folder, check, skip, finish } = checks;
const { gpus } = addon.gpus();
if (gpus.length < 2) {
  skip('everything', `it takes two GPUs, and ${gpus.length} is visible`);
  finish();
}
const [first, second] = gpus;
const GIB = 2 ** 30;
const { open, plan, supervised } = await buildEngines(checks, ['affine', 'wide', 'state']);
const { ran, trtforge } = programsIn(folder);

const usedBytes = (device) => addon.gpuState(gpus[device].uuid).memoryUsedBytes;

await check('sessions on both GPUs at once, each with memory of its own', () =>
  using(open('wide'), (near) =>
    using(open('wide', { device: 1 }), async (far) => {
      assert.deepEqual([near.facts.gpu.index, far.facts.gpu.index], [0, 1]);
      const before = [0, 1].map(usedBytes);
      const prepared = await far.prepare({ x: [65536, 2048] });
      const [here, there] = [0, 1].map((device) => usedBytes(device) - before[device]);
      prepared.close();
      assert.ok(there >= 0.9 * GIB && here < 0.1 * GIB, `${here} and ${there} bytes`);
      return { MiB: [here, there].map((bytes) => Math.round(bytes / 2 ** 20)) };
    }),
  ),
);

await check('runs in turns and side by side give what they should', () =>
  using(open('affine'), (near) =>
    using(open('affine', { device: 1 }), (far) =>
      using(supervised('affine', { device: 1 }), async (child) => {
        for (let round = 0; round < 50; round++) {
          const input = rows(1 + (round % 64), round);
          const sessions = [near, far, child];
          const outputs = await Promise.all(sessions.map((session) => session.run(named({ x: input }))));
          for (const output of outputs) assertAffine(output, input);
          for (const session of [near, far]) assertAffine(session.runSync(named({ x: input })), input);
        }
      }),
    ),
  ),
);

await check('state stays on its GPU, and is refused by a session on the other', () =>
  using(open('state'), (near) =>
    using(open('state', { device: 1 }), async (far) => {
      const state = far.state({ state: 'state_out' });
      const call = await far.prepare({ x: [2, WIDTH] }, { state });
      call.inputs.x.fill(1);
      for (let step = 1; step <= 10; step++) {
        call.runSync();
        assert.ok(call.outputs.y.every((each) => each === 2 * step));
      }
      assert.ok(float32Values(await state.read('state')).every((each) => each === 10));
      await refused('TF_SESSION_INPUT', /another session/, near.prepare({ x: [2, WIDTH] }, { state }));
      call.close();
      state.close();
    }),
  ),
);

await check('a third GPU is refused, and those that are there are named', () =>
  refused(
    'TF_GPU_UNAVAILABLE',
    new RegExp(`no GPU ${gpus.length} here: 0 is .*, 1 is `),
    open('affine', { device: gpus.length }),
  ),
);

const bench = (words, env = {}) =>
  trtforge(['bench', plan('wide'), '--shapes', 'x:4096x2048', '--duration', '1', ...words], { env });
const uuidOf = ({ gpu }) => gpu.uuid;

await check(
  'bench --device 1 measures the second GPU and reads its clocks; CUDA_VISIBLE_DEVICES names it too',
  () => {
    const here = bench([]);
    const there = bench(['--device', '1']);
    const renamed = bench([], { CUDA_VISIBLE_DEVICES: '1' });
    const byUuid = bench([], { CUDA_VISIBLE_DEVICES: second.uuid });
    assert.deepEqual([here, there, renamed, byUuid].map(uuidOf), [first.uuid, ...Array(3).fill(second.uuid)]);
    const during = there.runs[0].gpuStates.during;
    assert.ok(during.length > 0);
    return { gpuMs: [here, there, renamed].map(({ gpuMs }) => gpuMs.median), warnings: there.warnings };
  },
);

/** The command line without waiting for its end. */
const started = (words) =>
  new Promise((resolve) => {
    const path = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
    const env = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') };
    const child = spawn(process.execPath, [path, ...words, '--json'], {
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
    });
    child.on('close', () => resolve(JSON.parse(text)));
  });

await check('two benches, one on each GPU, do not doubt each other; two on one GPU do', async () => {
  const words = ['bench', plan('wide'), '--shapes', 'x:4096x2048', '--duration', '4'];
  const othersOf = ({ error, warnings }) => {
    assert.equal(error, undefined, error?.message);
    return warnings.filter((each) => /[Aa]nother|other process/.test(each));
  };
  const apart = await Promise.all([started(words), started([...words, '--device', '1'])]);
  assert.deepEqual(apart.flatMap(othersOf), []);
  const together = await Promise.all([1, 2].map(() => started([...words, '--device', '1'])));
  assert.ok(together.flatMap(othersOf).length > 0, 'neither says that it was not alone');
  return { apart: apart.map(uuidOf), told: othersOf(together[0]).concat(othersOf(together[1]))[0] };
});

await check('run --device 1 and engine layers --device 1', () => {
  const shapes = ['--inputs', 'random', '--shapes', 'x:4x64', '--seed', '3'];
  const runs = [0, 1].map((device) => {
    const out = join(folder, `run${device}.npz`);
    trtforge(['run', plan('affine'), ...shapes, '--device', String(device), '-o', out]);
    return out;
  });
  const compared = trtforge(['compare', ...runs, '--atol', '0', '--rtol', '0']);
  assert.equal(compared.ok, true);
  const layers = trtforge(['engine', 'layers', plan('affine'), '--device', '1']);
  assert.ok(layers.layers.length > 0);
});

/** A command that works on the second GPU: what it answers, and how much more memory each GPU had in use meanwhile, at most. */
async function watched(words) {
  const before = [0, 1].map(usedBytes);
  let most = [0, 0];
  let over = false;
  const work = started([...words, '--device', '1']).finally(() => {
    over = true;
  });
  while (!over) {
    most = most.map((bytes, device) => Math.max(bytes, usedBytes(device) - before[device]));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const answer = await work;
  assert.ok(!answer.error, answer.error?.message);
  const MiB = most.map((bytes) => Math.round(bytes / 2 ** 20));
  assert.ok(MiB[0] < 64 && MiB[1] > 200, `${MiB[0]} MiB on the first GPU, ${MiB[1]} on the second`);
  return { answer, MiB };
}

const model = join(folder, 'models/r50/model/r50.onnx');
ran('build/examples/models/main.js', ['resnet50', '--size', 'tiny', '-o', model]);
const small = ['--profile', 'input:1x3x32x32/4x3x32x32/4x3x32x32', '--no-cache'];

const buildsThere = async (name, builder) => {
  const engine = join(folder, `${name}.engine`);
  const { answer, MiB } = await watched(['build', model, ...small, '-o', engine, ...builder]);
  assert.deepEqual([answer.source, existsSync(engine)], ['built', true]);
  const ran = trtforge(['run', engine, '--inputs', 'random', '--device', '1']);
  assert.equal(ran.outputs.length, 1);
  return { MiB, buildMs: answer.buildMs };
};

await check('build --device 1 builds there', () => buildsThere('native', []));

await check('forge --device 1 builds, verifies and measures there, and its report names it', async () => {
  const runRoot = join(folder, 'run');
  const { answer, MiB } = await watched(['forge', model, ...small, '--run-root', runRoot]);
  const { engineVerification, bench: measured, environment, report, repeat } = answer;
  assert.equal(uuidOf(measured), second.uuid);
  assert.match(repeat, / --device 1( |$)/);
  const gpu = environment.find(({ name }) => name === 'GPU').text;
  assert.match(gpu, /, number 1$/);
  assert.ok(readFileSync(report, 'utf8').includes(gpu), `${report} does not name ${gpu}`);
  return { MiB, gpu, outcome: engineVerification.outcome };
});

const trtexec = process.env.TRTEXEC ?? null;
if (trtexec === null || !existsSync(trtexec))
  skip('build, streams and bench with trtexec', 'TRTEXEC names no trtexec');
else {
  await check('build --builder trtexec --device 1 builds there', () =>
    buildsThere('theirs', ['--builder', 'trtexec']),
  );

  await check('bench --with trtexec --device 1', () => {
    const there = bench(['--device', '1', '--with', 'trtexec']);
    assert.equal(uuidOf(there), second.uuid);
    return { gpuMs: there.gpuMs.median };
  });

  await check('deepstream size --device 1 builds and measures there, natively and with trtexec', async () => {
    const quick = [
      '--max-batch',
      '4',
      '--max-batch-limit',
      '4',
      '--duration',
      '1',
      '--warm-up',
      '200',
      '--fps',
      '1',
    ];
    const used = [];
    for (const builder of [[], ['--builder', 'trtexec', '--with', 'trtexec', '--name', 'theirs']]) {
      const { answer, MiB } = await watched([
        'deepstream',
        'size',
        model,
        ...quick,
        '--no-cache',
        ...builder,
      ]);
      assert.ok(answer.baseline.qps > 0);
      used.push(MiB);
    }
    return { MiB: used };
  });
}

finish();
