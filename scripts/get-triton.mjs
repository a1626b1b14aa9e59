// Puts Triton's server, out of the Python package nvidia-pytriton (Apache-2.0; 55 MB), into build/triton-VERSION for the tests, once.
// `node scripts/get-triton.mjs` prints the folder with the program.
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runProgram, runScript, SetupError } from './phases.mjs';

const VERSION = '0.7.0';
const SHA256 = '21f063ff93bb426d0c06b7a55e7eb9efcfe62c0dddd9a908e9877e18710128df';
const build = fileURLToPath(new URL('../build/', import.meta.url));
const home = join(build, `triton-${VERSION}`);

/** The folder that holds `tritonserver`, or will. */
export const tritonFolder = join(home, 'pytriton', 'tritonserver', 'bin');

/** Downloads it by pip unless it is there. Throws SetupError for another file than the known one. */
export function getTriton() {
  if (existsSync(tritonFolder)) return tritonFolder;
  const folder = join(build, `triton-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    const run = (...args) => runProgram('python3', args, { cwd: folder });
    run('-m', 'pip', 'download', '--quiet', '--no-deps', `nvidia-pytriton==${VERSION}`);
    const wheel = join(folder, readdirSync(folder).find((name) => name.endsWith('.whl')) ?? '');
    if (createHash('sha256').update(readFileSync(wheel)).digest('hex') !== SHA256)
      throw new SetupError(`${wheel} is not the nvidia-pytriton ${VERSION} that the tests know.`);
    run('-m', 'zipfile', '-e', wheel, 'unpacked');
    chmodSync(join(folder, 'unpacked', 'pytriton', 'tritonserver', 'bin', 'tritonserver'), 0o755);
    renameSync(join(folder, 'unpacked'), home);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return tritonFolder;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  runScript(() => process.stdout.write(`${getTriton()}\n`));
}
