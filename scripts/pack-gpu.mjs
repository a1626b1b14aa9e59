// `npm run pack:gpu [-- FILE]`: packs what a GPU machine needs to run `npm run test:gpu` and `npm run bench:gpu` into one archive
// (build/trtforge-gpu.tar.gz): the compiled project, the addon, the checks, and the few modules used at run time. That machine needs
// Node and TensorRT, no network and no compiler (one check has g++ compile a recorder, and is skipped without).
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { runProgram, runScript, SetupError } from './phases.mjs';
import { root } from './setup.mjs';

const PROJECT = [
  'package.json',
  'dist',
  'native',
  'build/trtforge.node',
  'build/examples',
  'scripts',
  'examples',
  'test/gpu',
  'test/fakes/tensorrt/nvtx.cpp',
  'bench/gpu',
];

/** ONNX Runtime carries every platform; one is enough. */
const EXCLUDED = [
  'node_modules/onnxruntime-node/bin/napi-v*/darwin',
  'node_modules/onnxruntime-node/bin/napi-v*/win32',
  `node_modules/onnxruntime-node/bin/napi-v*/linux/${process.arch === 'x64' ? 'arm64' : 'x64'}`,
];

/** Every module that the compiled project may import, with what those import. */
function modules() {
  const listed = runProgram('npm', ['ls', '--omit=dev', '--all', '--parseable'], { cwd: root });
  return listed
    .split('\n')
    .map((path) => relative(root, path))
    .filter((path) => path.startsWith('node_modules/'));
}

runScript(() => {
  const archive = resolve(process.argv[2] ?? join(root, 'build', 'trtforge-gpu.tar.gz'));
  const missing = PROJECT.filter((path) => !existsSync(join(root, path)));
  if (missing.length > 0) {
    throw new SetupError(
      `${missing.join(', ')} is missing: run «npm run build && npm run build:examples && npm run build:native» first.`,
    );
  }
  mkdirSync(dirname(archive), { recursive: true });
  const excluded = EXCLUDED.map((pattern) => `--exclude=${pattern}`);
  const into = '--transform=s,^,trtforge/,';
  runProgram('tar', ['-czf', archive, ...excluded, into, ...PROJECT, ...modules()], { cwd: root });
  const megabytes = (statSync(archive).size / 1e6).toFixed(1);
  process.stdout.write(
    `${archive} (${megabytes} MB). On the GPU machine:\n` +
      '  tar -xzf trtforge-gpu.tar.gz && cd trtforge\n' +
      '  export TENSORRT_HOME=/path/to/TensorRT\n' +
      '  node scripts/test-gpu.mjs && node bench/gpu/main.mjs\n',
  );
});
