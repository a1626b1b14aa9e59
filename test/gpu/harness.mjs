// What every check on a GPU machine shares: the machine, its TensorRT, one JSON line per check, and small models made on the spot.
// The scripts need of the project: package.json, dist/, build/trtforge.node, native/abi/*.json, node_modules/{zod,@bufbuild/protobuf}.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { create, toBinary } from '@bufbuild/protobuf';
import { loadAddon } from '../../dist/addon/addon.js';
import { buildPlan } from '../../dist/engines/builder/build-supervised.js';
import { defaultRecipe } from '../../dist/engines/identity/recipe.js';
import { profileRange } from '../../dist/engines/profiles/sizes.js';
import { ModelProtoSchema } from '../../dist/formats/onnx/onnx_pb.js';

export const say = (line) => console.log(JSON.stringify(line));

/**
 * Prints the machine and gives what checks work with. Ends the process with exit code 3 where there is no GPU or no TensorRT.
 * `check(name, work)` runs one check and never throws; `skip(name, why)` says what this machine or version cannot show; `finish()` ends.
 */
export function openChecks() {
  const toolchain = findToolchain();
  const addon = loadAddon();
  const { gpus, reason, driverVersion, cudaVersion } = addon.gpus();
  if (toolchain === undefined || gpus.length === 0) {
    const why = reason ?? 'no libnvinfer.so in TENSORRT_HOME/lib or LD_LIBRARY_PATH';
    say({ check: 'machine', ok: false, why });
    process.exit(3);
  }
  say({ check: 'machine', ok: true, gpu: gpus[0], driverVersion, cudaVersion, tensorrt: toolchain.version });
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-gpu-'));
  const counts = { passed: 0, failed: 0, skipped: 0 };
  return {
    addon,
    toolchain,
    gpu: gpus[0],
    major: Number(toolchain.version.split('.')[0]),
    folder,
    async check(name, work) {
      const started = performance.now();
      const ms = () => Math.round(performance.now() - started);
      try {
        const facts = await work();
        counts.passed++;
        say({ check: name, ok: true, ms: ms(), ...facts });
      } catch (error) {
        counts.failed++;
        say({ check: name, ok: false, ms: ms(), code: error.code, why: error.message });
      }
    },
    skip(name, why) {
      counts.skipped++;
      say({ check: name, skipped: true, why });
    },
    finish() {
      rmSync(folder, { recursive: true, force: true });
      say({ check: 'all', ok: counts.failed === 0, ...counts });
      process.exit(counts.failed === 0 ? 0 : 1);
    },
  };
}

/**
 * Runs the project's programs in a folder: `ran(script, words)` gives what one printed, `trtforge(words)` the JSON object of the command line. Other exit
 * codes than `codes` (default 0) fail; `env` is added to the environment.
 */
export function programsIn(folder) {
  const ran = (script, words, { codes = [0], env = {} } = {}) => {
    const path = fileURLToPath(new URL(`../../${script}`, import.meta.url));
    const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...words], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, XDG_CACHE_HOME: join(folder, 'cache'), ...env },
      maxBuffer: 256 << 20,
    });
    assert.ok(codes.includes(status), `exit ${status}: ${stderr.slice(-1000)} ${stdout.slice(0, 500)}`);
    return { stdout, stderr };
  };
  const trtforge = (words, options) => JSON.parse(ran('dist/main.js', [...words, '--json'], options).stdout);
  return { ran, trtforge };
}

/** Awaits a rejection with this code whose message matches, and gives its first line. */
export async function refused(code, text, attempt) {
  const error = await attempt.then(
    () => assert.fail('an error was expected'),
    (reason) => reason,
  );
  assert.equal(error.code, code, error.message);
  assert.match(error.message, text);
  return { message: error.message.split('\n')[0] };
}

/** A build with everything decided, as far as builders read it; `recipe` is what differs from the default. */
export const resolvedBuild = (toolchain, modelPath, recipe, more) => ({
  toolchain,
  modelPath,
  identity: { recipe: { ...defaultRecipe, ...recipe }, target: { product: toolchain.product } },
  timingCache: null,
  pluginPaths: [],
  builder: 'native',
  verbose: false,
  ...more,
});

/** Builds a plan; `recipe` is what differs from the default, `more` of the build, `options` of its context. Returns the outcome. */
export const buildWith = (toolchain, modelPath, planPath, recipe = {}, more = {}, options = {}) =>
  buildPlan(
    resolvedBuild(toolchain, modelPath, recipe, more),
    { modelPath, planPath },
    { emit: () => {}, ...options },
  );

/** A profile of a contract as recipes have it: of each input the least, usual and largest dimensions. */
export const contractProfile = ({ ranges }) =>
  Object.fromEntries(Object.entries(ranges).map(([name, dims]) => [name, profileRange(dims)]));

/** What the library says of a plan once it has loaded it; nothing stays on the GPU. */
export async function loadedFacts(addon, toolchain, planPath) {
  const request = {
    inferenceLibrary: toolchain.libraries.inference,
    pluginLibrary: null,
    pluginPaths: [],
    planPath,
    label: planPath,
    device: 0,
    allowHostCode: false,
    weightBudget: null,
    verbose: false,
  };
  const engine = await addon.openEngine(request, () => {}).done;
  await engine.close().done;
  return engine.facts;
}

/** The first folder with libnvinfer.so.N, its version asked of the library itself. */
export function findToolchain() {
  const folders = [
    ...(process.env.TENSORRT_HOME ? [join(process.env.TENSORRT_HOME, 'lib'), process.env.TENSORRT_HOME] : []),
    ...(process.env.LD_LIBRARY_PATH ?? '').split(':'),
  ].filter((path) => path !== '' && existsSync(path));
  for (const path of folders) {
    const library = (stem) => {
      const name = readdirSync(path).find((file) => new RegExp(`^lib${stem}\\.so\\.\\d+$`).test(file));
      return name === undefined ? null : join(path, name);
    };
    const inference = library('nvinfer');
    if (inference === null) continue;
    const { version } = loadAddon().probe(inference);
    const libraries = { inference, parser: library('nvonnxparser'), plugins: library('nvinfer_plugin') };
    return {
      product: 'tensorrt',
      version,
      libraries,
      trtexec: process.env.TRTEXEC ?? null,
      foundBy: 'TENSORRT_HOME',
    };
  }
  return undefined;
}

/** A runtime of its own to run engines with: `file` is libnvinfer_lean.so.N or libnvinfer_dispatch.so.N, which have neither parser nor plug-ins. */
export function runtimeAt(file) {
  const { version } = loadAddon().probe(file);
  const [, flavour = 'full'] = /libnvinfer_(lean|dispatch)\.so/.exec(file) ?? [];
  const libraries = { inference: file, parser: null, plugins: null };
  return { product: 'tensorrt', version, flavour, libraries, trtexec: null, foundBy: 'RUN_RUNTIME' };
}

/** Writes x [batch, width] through `depth` layers of its own width (matrix product, then `operator`) to y; gives the file's path. */
export function writeLayers(folder, name, depth, width, operator = 'Tanh') {
  const layers = Array.from({ length: depth }, (_, layer) => layer);
  const output = (layer) => (layer === depth - 1 ? 'y' : `h${layer}`);
  const weights = (layer) =>
    Float32Array.from({ length: width * width }, (_, index) => Math.sin(index + layer) / width);
  return writeModel(folder, name, {
    inputs: [value('x', 1, ['batch', width])],
    outputs: [value('y', 1, ['batch', width])],
    initializers: layers.map((layer) => initializer(`w${layer}`, 1, [width, width], weights(layer))),
    nodes: layers.flatMap((layer) => [
      {
        opType: 'MatMul',
        name: `mm${layer}`,
        input: [layer === 0 ? 'x' : output(layer - 1), `w${layer}`],
        output: [`m${layer}`],
      },
      { opType: operator, name: `act${layer}`, input: [`m${layer}`], output: [output(layer)] },
    ]),
  });
}

/** An input or output: `elemType` is ONNX's number, dimensions are numbers or symbols. */
export const value = (name, elemType, dims) => ({
  name,
  type: {
    value: {
      case: 'tensorType',
      value: {
        elemType,
        shape: {
          dim: dims.map((dim) =>
            typeof dim === 'string'
              ? { value: { case: 'dimParam', value: dim } }
              : { value: { case: 'dimValue', value: BigInt(dim) } },
          ),
        },
      },
    },
  },
});

/** A weight from a typed array. */
export const initializer = (name, dataType, dims, values) => ({
  name,
  dataType,
  dims: dims.map(BigInt),
  rawData: new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
});

/** Writes a graph as opset 17 (and version 1 of `domains`) to `folder/name.onnx`; gives the path. */
export function writeModel(folder, name, { domains = [], inputs, outputs, initializers = [], nodes }) {
  const graph = { name, input: inputs, output: outputs, initializer: initializers, node: nodes };
  const model = create(ModelProtoSchema, {
    irVersion: 8n,
    opsetImport: [{ domain: '', version: 17n }, ...domains.map((domain) => ({ domain, version: 1n }))],
    graph,
  });
  const path = join(folder, `${name}.onnx`);
  writeFileSync(path, toBinary(ModelProtoSchema, model));
  return path;
}
