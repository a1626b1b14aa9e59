import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ortHeader, readOrtTable } from '../../../native/abi/slots-header.mjs';
import { findOrtLibraries } from '../../../src/engines/runtime/onnxruntime/find-library.js';
import { thisMachine } from '../../../src/tensorrt/toolchain/find.js';
import { fakeElf } from '../elf.js';
import { alone } from '../tensorrt/library.js';

const folder = fileURLToPath(new URL('../../../build/fake-onnxruntime/', import.meta.url));
const source = fileURLToPath(new URL('./shim.cpp', import.meta.url));
const library = join(folder, 'libonnxruntime.so.1');
const compiling = promisify(execFile);

/** The libraries of providers, which the shim plays itself. */
const PROVIDERS = ['shared', 'cuda', 'tensorrt'].map((name) => `libonnxruntime_providers_${name}.so`);

/** onnxruntime-node's own library; undefined where the package is not installed. */
export const realLibrary = (): string | undefined =>
  findOrtLibraries({ ...thisMachine({}), root: folder, home: folder })[0]?.path;

/** Compiles `shim.cpp` once for these sources, whichever process does it. */
export function compileFakeOnnxRuntime(): Promise<void> {
  const header = ortHeader(readOrtTable());
  const stamp = createHash('sha256')
    .update(header)
    .update(readFileSync(source))
    .update(fakeElf({}))
    .digest('hex');
  return alone('fake-onnxruntime', async () => {
    const stampFile = join(folder, 'digest');
    if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'ort_slots.h'), header);
    const flags = ['-std=c++17', '-fPIC', '-shared', '-Wall', '-Wextra', `-I${folder}`];
    await compiling(process.env.CXX ?? 'g++', [...flags, source, '-o', `${library}.${process.pid}`]);
    for (const name of PROVIDERS) writeFileSync(join(folder, name), fakeElf({}));
    renameSync(`${library}.${process.pid}`, library);
    writeFileSync(stampFile, stamp);
  });
}

type Wish =
  | 'hidden-device'
  | 'no-device'
  | 'not-built'
  | 'other-device'
  | 'no-memory'
  | 'no-kernel'
  | 'lost-library'
  | 'bad-option'
  | 'tensorrt';

/** The environment in which sessions load the fake. `takes` are the operators of its provider; every call that it plays is a line of `log`. */
export const fakeProviders = (
  takes: string,
  log: string,
  more: { readonly wish?: Wish; readonly version?: string } = {},
): Record<string, string> => ({
  ORT_HOME: folder,
  FAKE_ORT_REAL: realLibrary() ?? '',
  FAKE_ORT_TAKES: takes,
  FAKE_ORT_LOG: log,
  FAKE_ORT_WISH: more.wish ?? '',
  FAKE_ORT_VERSION: more.version ?? '',
});
