import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildMinio, hasGo } from './build-minio.mjs';
import { compile } from './compile.mjs';
import { Phases, runProgram, runScript, SetupError } from './phases.mjs';

/** The folder of the clone. */
export const root = fileURLToPath(new URL('../', import.meta.url));

const OLDEST_NODE = [20, 19];

/** Building engines needs x86-64 Linux; inspect, convert, verify and report work elsewhere too. */
const canBuildEngines = process.platform === 'linux' && process.arch === 'x64';
const NOT_HERE = 'skipped: x86-64 Linux only';

/** What a fresh Debian or Ubuntu machine may lack: how to see that it is there, and the package that brings it. */
const npm = { name: 'npm', probe: ['npm', '--version'], debianPackage: 'npm' };
const forEngines = [
  { name: 'python3', probe: ['python3', '--version'], debianPackage: 'python3' },
  { name: 'pip', probe: ['python3', '-m', 'pip', '--version'], debianPackage: 'python3-pip' },
];

/** Throws one SetupError that names everything this machine lacks and the command that brings it. */
export function checkMachine({
  nodeVersion = process.versions.node,
  engines = canBuildEngines,
  has = (probe) => spawnSync(probe[0], probe.slice(1), { stdio: 'ignore' }).status === 0,
} = {}) {
  const [major, minor] = nodeVersion.split('.').map(Number);
  if (major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1])) {
    throw new SetupError(
      `Node ${nodeVersion} is too old: trtforge needs ${OLDEST_NODE.join('.')} or newer. Install Node 20, 22 or 24 and run the command again.`,
    );
  }
  const missing = [npm, ...(engines ? forEngines : [])].filter(({ probe }) => !has(probe));
  if (missing.length > 0) {
    throw new SetupError(
      `This machine lacks ${missing.map(({ name }) => name).join(', ')}. On Debian or Ubuntu: sudo apt-get install ${missing
        .map(({ debianPackage }) => debianPackage)
        .join(' ')}`,
    );
  }
}

/**
 * True when node_modules is not what package-lock.json asks for, judged by npm's own record of what it installed
 * (node_modules/.package-lock.json). Optional packages that npm left out, for another platform say, do not count.
 */
export function packagesAreStale(folder = root) {
  const record = join(folder, 'node_modules', '.package-lock.json');
  if (!existsSync(record)) return true;
  const packagesOf = (file) => JSON.parse(readFileSync(file, 'utf8')).packages ?? {};
  const installed = packagesOf(record);
  return Object.entries(packagesOf(join(folder, 'package-lock.json'))).some(([path, wanted]) => {
    if (path === '') return false;
    const found = installed[path];
    if (found === undefined) return wanted.optional !== true;
    return found.version !== wanted.version || found.integrity !== wanted.integrity;
  });
}

/** Each step of the way from a clone to a working trtforge. All are safe to repeat; what is up to date costs little. */
export const steps = {
  machine: {
    phase: 'check the machine',
    run: () => {
      checkMachine();
      return `Node ${process.versions.node}`;
    },
  },
  packages: {
    phase: 'install npm packages',
    run: () => {
      if (!packagesAreStale()) return 'up to date';
      // Not `npm ci`: it would remove node_modules first.
      runProgram('npm', ['install', '--no-save', '--no-audit', '--no-fund'], { cwd: root });
      return 'versions and digests of package-lock.json';
    },
  },
  dist: {
    phase: 'compile TypeScript',
    run: () => (compile('dist') ? '' : 'up to date'),
  },
  examples: {
    phase: 'compile the examples',
    run: () => (compile('examples') ? '' : 'up to date'),
  },
  addon: {
    phase: 'get the addon',
    run: () => {
      if (!canBuildEngines) return NOT_HERE;
      runProgram(process.execPath, ['scripts/build-native.mjs'], { cwd: root });
    },
  },
  toolchain: {
    phase: 'get the tensorrt-rtx toolchain',
    run: () => {
      if (!canBuildEngines) return NOT_HERE;
      process.stderr.write(
        '  TensorRT-RTX is software of NVIDIA; to use it is to accept its licence, which the lines below name.\n',
      );
      process.stderr.write(
        runProgram(
          process.execPath,
          ['dist/main.js', 'toolchain', 'install', 'tensorrt-rtx', '--accept-license'],
          {
            cwd: root,
            show: true,
          },
        ).replace(/^(?=.)/gm, '  '),
      );
    },
  },
  minio: {
    phase: 'build the S3 server of the tests',
    run: () => {
      if (!hasGo()) return 'not here: there is no Go, so tests against it are skipped by name';
      buildMinio();
    },
  },
};

/** The steps that trtforge itself needs; the rest is for its tests. */
const forUsers = Object.keys(steps).filter((name) => name !== 'minio');

/** Runs the named steps in order. Throws SetupError. */
export function setUp({ phases = new Phases(), only = forUsers } = {}) {
  for (const name of only) phases.run(steps[name].phase, steps[name].run);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  runScript(() => {
    const phases = new Phases();
    setUp({ phases });
    process.stderr.write(`\n${phases.table()}\n`);
  });
}
