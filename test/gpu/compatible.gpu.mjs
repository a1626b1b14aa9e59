// Which TensorRT runs a version-compatible engine, on a real GPU: the library that built it, lean and dispatch runtimes of later versions, with leave to
// run code that an engine carries and without. Prints one JSON line per check. Running engines in full on such a runtime: run.gpu.mjs with RUN_RUNTIME.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt LEAN_RUNTIMES=/a/libnvinfer_lean.so.10:/b/libnvinfer_lean.so.11 node test/gpu/compatible.gpu.mjs
//
// LEAN_TRTEXECS=/a/trtexec:/b/trtexec measures with each over the runtimes of its major that are not older than it.
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { loadsIn } from '../../dist/engines/plan/loads.js';
import { openEngineSession } from '../../dist/engines/runtime/tensorrt/engine-session.js';
import { openSupervisedEngine } from '../../dist/engines/runtime/tensorrt/supervised-engine.js';
import { float32Values } from '../../dist/formats/tensor/tensor.js';
import { defaultMode } from '../../dist/quality/bench/options.js';
import { benchTrtexec } from '../../dist/quality/bench/trtexec/trtexec-bench.js';
import { findToolchains } from '../../dist/tensorrt/toolchain/find.js';
import { trtexecToMeasure } from '../../dist/tensorrt/toolchain/trtexec.js';
import { COMPATIBLE, leanLibrary, named, rows, using, WIDTH } from './engines.mjs';
import { buildWith, openChecks, refused, runtimeAt, writeLayers } from './harness.mjs';

const { toolchain, folder, check, skip, finish } = openChecks();
const listed = (variable) => (process.env[variable] ?? '').split(':').filter((path) => path !== '');
const runtimes = listed('LEAN_RUNTIMES');
const carries = leanLibrary(toolchain) !== undefined;
const model = writeLayers(folder, 'layers', 2, WIDTH);
const plan = (name) => join(folder, `${name}.engine`);
const input = rows(3);

const build = (name, flags) =>
  buildWith(toolchain, model, plan(name), {
    optimizationLevel: 1,
    flags,
    profiles: [{ x: { min: [1, WIDTH], opt: [4, WIDTH], max: [8, WIDTH], values: false } }],
  });

/** What a runtime makes of the input. */
const answer = (name, runtime, options) =>
  using(
    openEngineSession(plan(name), { toolchain: runtime, requirePassport: false, ...options }),
    async (session) => float32Values((await session.run(named({ x: input }))).get('y')),
  );

/** How a user names the runtime and the first trtexec listed that may measure with it; undefined where none may. */
async function withTrtexec(file) {
  for (const trtexec of listed('LEAN_TRTEXECS')) {
    const environment = { ...process.env, TENSORRT_HOME: dirname(file), TRTEXEC: trtexec };
    const found = await findToolchains(environment);
    const runtime = found.find(({ libraries }) => libraries.inference === file);
    const able = await trtexecToMeasure(runtime, environment).catch(() => undefined);
    if (able !== undefined) return { environment, runtime };
  }
  return undefined;
}

const measured = ({ environment, runtime }, name, layers) =>
  benchTrtexec(
    {
      engine: plan(name),
      toolchain: runtime.name,
      device: 0,
      plugins: [],
      allowHostCode: true,
      shapes: { kind: 'shapes', shapes: new Map([['x', [4, WIDTH]]]) },
      inputs: { seed: 0, ranges: [], files: [] },
      mode: { ...defaultMode, durationMs: 1000, transfers: false, graph: true, spinWait: true },
      layers,
      samples: undefined,
      wait: false,
    },
    {
      emit: () => {},
      signal: new AbortController().signal,
      environment,
      trtexecLog: join(folder, `trtexec-${runtime.version}.log`),
    },
  );

async function measureWithTrtexec(file, name, which) {
  const able = await withTrtexec(file);
  if (able === undefined) {
    skip(`trtexec measures with ${name}`, 'LEAN_TRTEXECS names none that may');
    return;
  }
  await check(`trtexec measures with ${name}`, async () => {
    const { backend, gpuMs, mode, warnings } = await measured(able, which, false);
    assert.ok(backend.endsWith(` with ${name}`), backend);
    assert.ok(gpuMs.count >= defaultMode.iterations);
    assert.equal(mode.graph, true);
    assert.deepEqual(
      warnings.filter((warning) => warning.startsWith('trtexec printed')),
      [],
    );
    return { backend, gpuMs: gpuMs.median, inferences: gpuMs.count };
  });
  await check(`trtexec times layers with ${name}`, async () => {
    const { layers } = await measured(able, which, true);
    assert.ok(layers.layers.length > 0);
    return { layers: layers.layers.length };
  });
}

await check('an engine of the usual kind, and one that later versions may run', async () => {
  await build('usual', []);
  await build('compatible', COMPATIBLE);
});
if (carries)
  await check('an engine that carries the lean runtime', () => build('carrying', ['version-compatible']));
else
  skip(
    'an engine that carries the lean runtime',
    'this TensorRT has no libnvinfer_lean, which building one needs',
  );

const usual = await answer('usual', toolchain, {});
const near = (got) => assert.ok(got.every((each, at) => Math.abs(each - usual[at]) <= 1e-3));

const leave = { allowHostCode: true };

await check(
  `TensorRT ${toolchain.version}, which built them, runs what carries no code without leave`,
  async () => near(await answer('compatible', toolchain, {})),
);
if (carries) {
  await check(`TensorRT ${toolchain.version} runs the runtime that an engine carries with leave`, async () =>
    near(await answer('carrying', toolchain, leave)),
  );
  await check(`TensorRT ${toolchain.version} refuses it without leave, and says how to give it`, async () => {
    const error = await answer('carrying', toolchain, {}).catch((reason) => reason);
    assert.equal(error.code, 'TF_PLAN_LOAD_FAILED');
    assert.match(error.remedy, /--allow-host-code/);
  });
}

/** The plan does not load, and whoever asked lives. */
const notLoaded = (name, runtime) =>
  refused(
    'TF_PLAN_LOAD_FAILED',
    /./,
    openSupervisedEngine(plan(name), { toolchain: runtime, requirePassport: false, ...leave }),
  );

for (const file of runtimes) {
  const runtime = runtimeAt(file);
  const name = `the ${runtime.flavour} runtime ${runtime.version}`;
  if (loadsIn(toolchain, runtime).loads === 'no') {
    await check(`${name} is of a version that loads nothing of this one`, () =>
      refused('TF_ENGINE_VERSION_MISMATCH', /cannot load it/, answer('compatible', runtime, leave)),
    );
    continue;
  }
  const isOfBuilder = loadsIn(toolchain, runtime).loads === 'yes';
  if (isOfBuilder)
    await check(`${name} runs the engine without a runtime inside, and needs no leave`, async () =>
      near(await answer('compatible', runtime, {})),
    );
  else
    await check(`${name} cannot run the engine without a runtime inside`, () =>
      notLoaded('compatible', runtime),
    );
  if (carries)
    await check(`${name} runs the engine that carries its runtime`, async () =>
      near(await answer('carrying', runtime, leave)),
    );
  if (isOfBuilder) await measureWithTrtexec(file, name, 'compatible');
  else if (carries) await measureWithTrtexec(file, name, 'carrying');
  await check(`${name} does not load the usual engine`, () => notLoaded('usual', runtime));
}
if (runtimes.length === 0) skip('lean runtimes of other versions', 'LEAN_RUNTIMES names none');

finish();
