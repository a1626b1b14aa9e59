// What every case works with: the GPU, its TensorRT, models and plans (made once, kept in a folder), and the peers.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadAddon } from '../../dist/addon/addon.js';
import { defaultRecipe } from '../../dist/engines/identity/recipe.js';
import { withLibraries } from '../../dist/tensorrt/toolchain/environment.js';
import { buildWith, findToolchain } from '../../test/gpu/harness.mjs';
import { startPython } from './python.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const range = (min, opt, max) => ({ min, opt, max, values: false });
const tokens = range([1, 128], [8, 128], [32, 128]);

/** The models that figures are about. `tiny` and `loop` are made in place, the others by the examples at full size. */
export const models = {
  resnet50: {
    generator: 'resnet50',
    profile: { input: range([1, 3, 224, 224], [32, 3, 224, 224], [64, 3, 224, 224]) },
    batches: [1, 64],
  },
  encoder: {
    generator: 'transformer-encoder',
    profile: { input_ids: tokens, attention_mask: tokens },
    batches: [1, 32],
  },
};

/** Undefined, with the reason said, where there is no GPU or no TensorRT. */
export async function openMachine({ work, rounds, ...given }) {
  const toolchain = findToolchain();
  const addon = loadAddon();
  const { gpus, reason, driverVersion } = addon.gpus();
  if (toolchain === undefined || gpus.length === 0) {
    console.error(reason ?? 'There is no libnvinfer.so in TENSORRT_HOME/lib or LD_LIBRARY_PATH.');
    return undefined;
  }
  const [gpu] = gpus;
  const major = Number(toolchain.version.split('.')[0]);
  const environment = withLibraries(toolchain, { ...process.env, XDG_CACHE_HOME: join(work, 'cache') });
  const trtexec = toolchain.trtexec !== null && existsSync(toolchain.trtexec) ? toolchain.trtexec : null;
  const python = await startPython(environment);
  const cached = (name, make) => {
    const path = join(work, name);
    return existsSync(path) ? path : make(path);
  };

  const machine = {
    root,
    work,
    rounds,
    addon,
    toolchain,
    gpu,
    major,
    environment,
    trtexec,
    python: python.peer,
    facts: {
      gpu: gpu.name,
      driver: driverVersion,
      tensorrt: toolchain.version,
      rounds,
      peers: { trtexec: trtexec === null ? null : toolchain.version, python: python.peer?.version ?? null },
      missing: [
        ...(trtexec === null ? ['trtexec: TRTEXEC names none'] : []),
        ...(python.peer === null ? [`Python: ${python.why}`] : []),
      ],
    },
    context: () => ({ emit: () => {}, signal: new AbortController().signal, environment }),
    /** The FP32 model: given, or generated at full size. */
    model: (name) =>
      given[name] ??
      process.env[name.toUpperCase()] ??
      cached(`${name}.onnx`, (path) =>
        command(
          ['build/examples/models/main.js', models[name].generator, '--size', 'full', '-o', path],
          path,
        ),
      ),
    /** The same, typed FP16 by trtforge's own conversion. */
    converted: (name) =>
      cached(`${name}.fp16.onnx`, (path) =>
        command(['dist/main.js', 'convert', machine.model(name), '--precision', 'fp16', '-o', path], path),
      ),
    recipe: (profile, more = {}) => ({
      ...defaultRecipe,
      stronglyTyped: major >= 10,
      profiles: [profile],
      ...more,
    }),
    /** Builds a plan to `path`; gives milliseconds. */
    build: async (modelPath, path, recipe, timingCachePath = null) => {
      const options = { env: environment };
      const { buildMs } = await buildWith(toolchain, modelPath, path, recipe, { timingCachePath }, options);
      return buildMs;
    },
    /** A plan that is built once and kept. Without a timing cache (null) it owes no choice to builds before it. */
    plan: async (name, modelPath, recipe, timingCache = join(work, 'timing.cache')) => {
      const path = join(work, `${name}.engine`);
      if (existsSync(path)) return path;
      await machine.build(modelPath(), `${path}.new`, recipe, timingCache);
      renameSync(`${path}.new`, path);
      return path;
    },
    /** ResNet-50 or the encoder, typed FP16 by our conversion. */
    typedPlan: (name) =>
      machine.plan(`${name}.typed`, () => machine.converted(name), machine.recipe(models[name].profile)),
    /** Reads the libraries once, so that the first of two builders does not pay for the disk. */
    readLibraries: () => {
      const folder = dirname(toolchain.libraries.inference);
      for (const file of readdirSync(folder)) spawnSync('cat', [join(folder, file)], { stdio: 'ignore' });
    },
    close: async () => {
      await machine.python?.close();
    },
  };
  return machine;
}

/** Runs a script of the project that makes a file; gives the file's path. */
export function command(args, made) {
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0 || !existsSync(made))
    throw new Error(`node ${args.join(' ')} failed: ${stderr.slice(-500)}`);
  return made;
}
