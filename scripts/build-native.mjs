#!/usr/bin/env node
// Puts the addon at build/trtforge.node: the prebuilt one where an installed platform package was made from these very sources, else native/
// compiled with a plain C++ compiler. Nothing of NVIDIA is needed: the tables in native/abi/ say how to call its libraries.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ortHeader, readOrtTable, readTables, slotsHeader } from '../native/abi/slots-header.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const sources = join(root, 'native', 'src');

/** For loops over numbers: vectors, and every operation rounded by itself, as in JavaScript. */
const NUMERIC = ['-O3', '-ffp-contract=off'];

/** Overruns of buffers end the process, and what the loader has resolved is read-only. */
const HARDENED = ['-O2', '-fstack-protector-strong', '-U_FORTIFY_SOURCE', '-D_FORTIFY_SOURCE=2'];
const HARDENED_LINK = '-Wl,-z,relro,-z,now';

const NUMERIC_UNITS = ['compare.cpp', 'rounding.cpp'];
/** How many compilers may work at once on the rest. */
const UNITS = 4;

/** All that the addon is compiled from. */
const sourceParts = () => [
  slotsHeader(readTables()),
  ortHeader(readOrtTable()),
  ...readdirSync(sources)
    .sort()
    .map((file) => readFileSync(join(sources, file))),
];

/** The digest of all that the addon is compiled from, in hexadecimal. */
export const sourcesDigest = () => digestOf(sourceParts());

/** The addon of an installed platform package, where it was made from these sources and nobody names a compiler; else null. */
function fittingPrebuilt() {
  if (process.env.CXX !== undefined) return null;
  const require = createRequire(import.meta.url);
  try {
    const addon = require.resolve(`@trtforge/${process.platform}-${process.arch}/trtforge.node`);
    const digest = readFileSync(join(dirname(addon), 'sources.sha256'), 'utf8').trim();
    return digest === sourcesDigest() ? addon : null;
  } catch {
    return null;
  }
}

/** Where the addon of a clone is. */
export const addonFile = join(root, 'build', 'trtforge.node');

/** Where that for another processor is, and the compiler that makes it, as Debian calls it. */
export const crossAddon = (arch) => join(root, 'build', `trtforge-${arch}.node`);
export const crossCompiler = (arch) => `${{ x64: 'x86_64', arm64: 'aarch64' }[arch]}-linux-gnu-g++`;

/**
 * Puts the addon at `output`, unless what is there stands for these sources, this compiler and these flags: a copy of `prebuilt` (null: none), else
 * compiled. Returns whether it wrote it.
 */
export async function buildAddon({
  output = addonFile,
  compiler = process.env.CXX ?? 'g++',
  flags = HARDENED,
  say = console.log,
  prebuilt = output === addonFile ? fittingPrebuilt() : null,
} = {}) {
  const header = slotsHeader(readTables());
  const ort = ortHeader(readOrtTable());
  const files = readdirSync(sources).sort();
  const version = prebuilt === null ? compilerVersion(compiler) : 'prebuilt';
  const stamp = digestOf([version, [...flags, ...NUMERIC, HARDENED_LINK].join(' '), ...sourceParts()]);
  const stampFile = `${output}.digest`;
  if (existsSync(output) && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return false;

  const unfinished = `${output}.${process.pid}.unpublished`;
  const publish = () => {
    renameSync(unfinished, output);
    writeFileSync(stampFile, stamp);
  };
  if (prebuilt !== null) {
    mkdirSync(dirname(output), { recursive: true });
    copyFileSync(prebuilt, unfinished);
    publish();
    say(`copied ${prebuilt}: it was made from these sources, nothing is compiled`);
    return true;
  }

  const objects = `${output}.objects`;
  // A package links all that lies here.
  rmSync(objects, { recursive: true, force: true });
  mkdirSync(objects, { recursive: true });
  writeFileSync(join(objects, 'slots.h'), header);
  writeFileSync(join(objects, 'ort_slots.h'), ort);
  const require = createRequire(import.meta.url);
  const nodeHeaders = require('node-api-headers').include_dir;
  const napiHeaders = dirname(require.resolve('node-addon-api/package.json'));
  const common = [
    '-std=c++17',
    '-fPIC',
    '-fvisibility=hidden',
    '-Wall',
    '-Wextra',
    // A unit of many files is no header: what it takes from an anonymous namespace is its own.
    '-Wno-subobject-linkage',
    '-DNAPI_VERSION=8',
    '-DNODE_ADDON_API_CPP_EXCEPTIONS',
    '-DNODE_GYP_MODULE_NAME=trtforge',
    ...flags,
  ];
  const units = writeUnits(
    objects,
    files.filter((file) => file.endsWith('.cpp')),
  );
  const started = performance.now();
  await eachAtOnce(units, availableParallelism(), (unit) =>
    compile(compiler, [
      ...common,
      ...(NUMERIC_UNITS.includes(unit) ? NUMERIC : []),
      '-isystem',
      napiHeaders,
      `-I${nodeHeaders}`,
      `-I${objects}`,
      `-I${sources}`,
      '-c',
      join(objects, unit),
      '-o',
      join(objects, `${unit}.o`),
    ]),
  );
  const made = units.map((unit) => join(objects, `${unit}.o`));
  await compile(compiler, ['-shared', HARDENED_LINK, ...flags, ...made, '-ldl', '-o', unfinished]);
  publish();
  say(
    `compiled ${output} with ${version.split('\n')[0]} in ${((performance.now() - started) / 1000).toFixed(1)} s`,
  );
  return true;
}

/**
 * Most of a file's time goes to Node-API's and the standard library's headers: few units of many files take a third of a unit for each file.
 * Returns the units' names, written into `folder`.
 */
function writeUnits(folder, files) {
  const glue = files.filter((file) => !NUMERIC_UNITS.includes(file));
  const size = Math.ceil(glue.length / UNITS);
  const units = NUMERIC_UNITS.map((file) => [file, [file]]);
  for (let at = 0; at < glue.length; at += size)
    units.push([`unit-${at / size}.cpp`, glue.slice(at, at + size)]);
  for (const [name, parts] of units)
    writeFileSync(join(folder, name), parts.map((file) => `#include "${join(sources, file)}"\n`).join(''));
  return units.map(([name]) => name);
}

function digestOf(parts) {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part).update('\0');
  return digest.digest('hex');
}

function compilerVersion(compiler) {
  const asked = spawnSync(compiler, ['--version'], { encoding: 'utf8' });
  if (asked.status === 0) return asked.stdout;
  throw refusal(
    'TF_COMPILER_MISSING',
    `The C++ compiler ${compiler} cannot be run (${asked.error?.code ?? `exit code ${asked.status}`}).`,
    'Install g++ (Debian and Ubuntu: apt install g++), or name another compiler in CXX.',
  );
}

function compile(compiler, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(compiler, args, { stdio: 'inherit' });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) resolve();
      else
        reject(
          refusal(
            'TF_COMPILE_FAILED',
            `${compiler} ended with ${signal ?? `exit code ${code}`} on the addon's sources.`,
            'Use g++ 9 or newer; the compiler’s own lines are printed above.',
          ),
        );
    });
  });
}

async function eachAtOnce(items, workers, work) {
  const waiting = [...items];
  const worker = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: workers }, worker));
}

function refusal(code, message, remedy) {
  return Object.assign(new Error(message), { code, remedy });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  if (process.platform !== 'linux') {
    console.error(`TF_NATIVE_UNSUPPORTED: the addon runs on Linux only, and this is ${process.platform}.`);
    process.exit(3);
  }
  try {
    if (!(await buildAddon())) console.log('build/trtforge.node is up to date');
  } catch (error) {
    if (error.remedy === undefined) throw error;
    console.error(`${error.code}: ${error.message}\n${error.remedy}`);
    process.exit(error.code === 'TF_COMPILER_MISSING' ? 3 : 5);
  }
}
