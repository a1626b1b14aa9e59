// Builds a model again and again in one process and prints what the process holds after each: node many-builds.mjs <libraries> <model> <plan> <times>
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildInProcess } from '../../dist/engines/builder/build-in-process.js';
import { defaultRecipe } from '../../dist/engines/identity/recipe.js';

const [libraries, modelPath, planPath, times] = process.argv.slice(2);
const build = {
  modelPath,
  toolchain: {
    product: 'tensorrt-rtx',
    version: '1.7.1.116',
    libraries: {
      inference: join(libraries, 'libtensorrt_rtx.so.1'),
      parser: join(libraries, 'libtensorrt_onnxparser_rtx.so.1'),
      plugins: null,
    },
    trtexec: null,
    foundBy: 'test',
  },
  identity: {
    recipe: {
      ...defaultRecipe,
      profiles: [{ x: { min: [1, 64], opt: [8, 64], max: [32, 64], values: false } }],
    },
    target: { product: 'tensorrt-rtx', computeCapabilities: [89] },
  },
  timingCache: null,
  pluginPaths: [],
  verbose: false,
};
const residentBytes = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) * 1024;
const held = [];
for (let count = 0; count < Number(times); count++) {
  await buildInProcess(build, { modelPath, planPath }, { emit: () => {} });
  globalThis.gc?.();
  held.push({
    residentBytes: residentBytes(),
    files: readdirSync('/proc/self/fd').length,
    threads: readdirSync('/proc/self/task').length,
  });
}
console.log(JSON.stringify(held));
