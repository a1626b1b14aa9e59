import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildMinio, hasGo } from './build-minio.mjs';
import { compile } from './compile.mjs';
import { getArm64 } from './get-arm64.mjs';
import { getTriton } from './get-triton.mjs';
import { Phases, runProgram, runScript, SetupError } from './phases.mjs';

/** The folder of the clone. */
export const root = fileURLToPath(new URL('../', import.meta.url));

const OLDEST_NODE = [20, 19];

/** Building engines needs Linux on x86-64 or Arm; inspect, convert, verify and report work elsewhere too. */
export const canBuildEngines = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);
const NOT_HERE = 'skipped: Linux on x86-64 or Arm only';

/** The package that runs models, and whether it has binaries for this machine. npm leaves it out without a word where it does not install. */
const onnxRuntime = 'onnxruntime-node';
const canRunModels = ['linux-x64', 'linux-arm64', 'darwin-arm64', 'win32-x64', 'win32-arm64'].includes(
  `${process.platform}-${process.arch}`,
);

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
 * (node_modules/.package-lock.json). Optional packages that npm left out, for another platform say, do not count; onnxRuntimeFault looks after ONNX Runtime.
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

/** Why ONNX Runtime does not load in the folder, in one line; undefined where it does, or where it has no binaries for this machine. */
function onnxRuntimeFault(folder) {
  if (!canRunModels) return undefined;
  const script = `try { require('${onnxRuntime}'); } catch (error) { console.log(error.message); process.exitCode = 1; }`;
  const { status, signal, stdout } = spawnSync(process.execPath, ['-e', script], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status === 0) return undefined;
  return signal === null ? stdout.trim().split('\n')[0] : `loading it ended with ${signal}`;
}

// Not `npm ci`: it would remove node_modules first. `.npmrc` keeps install scripts from running.
const npmInstall = ['install', '--no-save', '--include=optional'];

/** Installs what package-lock.json asks for unless it is there and ONNX Runtime loads. Throws a SetupError where it does not load afterwards. */
export function installPackages(
  folder = root,
  install = () => runProgram('npm', npmInstall, { cwd: folder }),
) {
  const broken = onnxRuntimeFault(folder) !== undefined;
  if (!broken && !packagesAreStale(folder)) return 'up to date';
  // npm does not look into a package that is there.
  if (broken) rmSync(join(folder, 'node_modules', onnxRuntime), { recursive: true, force: true });
  install();
  const fault = onnxRuntimeFault(folder);
  if (fault !== undefined) {
    throw new SetupError(
      `ONNX Runtime, which verify and forge need for models, cannot be loaded: ${fault}. To see what npm did: cd ${folder} && npm ${npmInstall.join(' ')} --loglevel=http`,
    );
  }
  return 'versions and digests of package-lock.json';
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
    run: () => installPackages(),
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
  triton: {
    phase: "get Triton's server for the tests",
    run: () => {
      try {
        getTriton();
      } catch (error) {
        if (!(error instanceof SetupError)) throw error;
        return `not here, so tests against it are skipped by name: ${error.message.split('\n')[0]}`;
      }
    },
  },
  arm64: {
    phase: 'get what runs Arm for the tests',
    run: () => {
      try {
        getArm64();
      } catch (error) {
        if (!(error instanceof SetupError)) throw error;
        return `not here, so tests on it are skipped by name: ${error.message.split('\n')[0]}`;
      }
    },
  },
};

/** The steps that trtforge itself needs; the rest is for its tests. */
const forUsers = Object.keys(steps).filter((name) => !['minio', 'triton', 'arm64'].includes(name));

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
