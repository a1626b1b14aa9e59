// Links the addon as its platform package carries it: one file that loads on every Linux of its processor whose glibc is as old as MAXIMUM_GLIBC.
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openFile } from '../dist/base/files/byte-source.js';
import { readElf } from '../dist/tensorrt/toolchain/elf.js';
import { runProgram, SetupError } from './phases.mjs';

const recipe = fileURLToPath(new URL('../native/portable', import.meta.url));

/** Node 20 itself needs 2.28. */
const MAXIMUM_GLIBC = '2.17';

/** What every Linux with Node has; libstdc++ is linked in. */
const LIBRARIES = ['libc.so.6', 'libgcc_s.so.1', 'ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'];

/** The old versions of functions: those of x86-64, or for Arm its first glibc. */
function oldSymbols(arch) {
  const ofX64 = readFileSync(join(recipe, 'glibc-symbols.txt'), 'utf8');
  return arch === 'arm64' ? ofX64.replaceAll(/@GLIBC_[\d.]+/g, '@GLIBC_2.17') : ofX64;
}

/**
 * Links the objects in the folder, which `compiler` made for `arch` (as Node spells it), into `output`. Throws SetupError where the result would need more than LIBRARIES
 * and MAXIMUM_GLIBC.
 */
export function linkPortable(objects, output, { compiler, arch }) {
  const work = mkdtempSync(join(tmpdir(), 'trtforge-portable-'));
  try {
    const run = (program, ...parameters) => runProgram(program, parameters, { cwd: work });
    const units = readdirSync(objects).filter((file) => file.endsWith('.o'));
    for (const file of units) copyFileSync(join(objects, file), join(work, file));
    // Of a compiler for another processor, its own.
    const objcopy = run(compiler, '-print-prog-name=objcopy').trim();
    writeFileSync(join(work, 'symbols.txt'), oldSymbols(arch));
    run(compiler, '-O2', '-fPIC', '-c', join(recipe, 'glibc.cpp'), '-o', 'glibc.compat.o');
    copyFileSync(run(compiler, '-print-file-name=libstdc++.a').trim(), join(work, 'libstdc++.a'));
    const inputs = [...units, 'glibc.compat.o'];
    for (const file of [...inputs, 'libstdc++.a']) run(objcopy, '--redefine-syms=symbols.txt', file);
    const exported = `-Wl,--version-script=${join(recipe, 'exports.map')}`;
    const options = ['-s', '-L.', '-static-libstdc++', '-Wl,--gc-sections', '-Wl,-z,relro,-z,now', exported];
    run(compiler, '-shared', ...options, ...inputs, '-ldl', '-o', 'trtforge.node');
    assertPortable(join(work, 'trtforge.node'), run(compiler, '-print-prog-name=objdump').trim());
    copyFileSync(join(work, 'trtforge.node'), `${output}.unpublished`);
    renameSync(`${output}.unpublished`, output);
  } finally {
    rmSync(work, { recursive: true });
  }
}

function assertPortable(path, objdump) {
  const file = openFile(path);
  const { needed, versions } = readElf(file);
  file.close();
  const libraries = needed.filter((name) => !LIBRARIES.includes(name));
  const newer = [...versions.values()].flat().filter((version) => /^GLIBC/.test(version) && isNewer(version));
  if (libraries.length + newer.length === 0) return;
  const symbols = runProgram(objdump, ['-T', path], { cwd: recipe })
    .split('\n')
    .filter((line) => newer.some((version) => line.includes(`(${version})`)))
    .map((line) => line.trim().split(/\s+/).at(-1));
  throw new SetupError(
    `The addon would need ${[...libraries, ...newer].join(', ')}, which older systems lack (${symbols.join(', ')}). native/portable/README.md says where older names are written.`,
  );
}

/** Whether `GLIBC_2.34` is newer than MAXIMUM_GLIBC. */
function isNewer(version) {
  const parts = (text) => text.split('.').map(Number);
  const [major, minor] = parts(version.replace('GLIBC_', ''));
  const [maximumMajor, maximumMinor] = parts(MAXIMUM_GLIBC);
  return !(major < maximumMajor || (major === maximumMajor && minor <= maximumMinor));
}
