import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';
import { pythonWith } from '../../bench/peers.js';
import { ESPEAK_VERSION } from '../../examples/recogniser/espeak.js';
import { minioPath } from '../../scripts/build-minio.mjs';
import { arm64Folder } from '../../scripts/get-arm64.mjs';
import { tritonFolder } from '../../scripts/get-triton.mjs';
import { cacheFolder } from '../../src/base/files/folders.js';

/** What some tests need and a machine may lack. Each finds the thing, or gives undefined. */
const finders = {
  chromium: () => process.env.CHROMIUM ?? onPath('chromium', 'chromium-browser', 'google-chrome'),
  /** The folder that holds libtensorrt_rtx.so.1 and its parser. */
  toolchain: () => process.env.TRTFORGE_TEST_TOOLCHAIN ?? installedToolchain(),
  onnxruntime: () => resolvable('onnxruntime-node'),
  /** The S3 server, built by `node scripts/build-minio.mjs`. */
  minio: () => (existsSync(minioPath) ? minioPath : undefined),
  /** The folder of Triton's server, which `node scripts/get-triton.mjs` makes. */
  triton: () => (existsSync(tritonFolder) ? tritonFolder : undefined),
  /** The compiler for Arm on x86-64. */
  'arm64-compiler': () => (process.arch === 'x64' ? onPath('aarch64-linux-gnu-g++') : undefined),
  /** The folder that `node scripts/get-arm64.mjs` makes, where the kernel lets a namespace of users run programs for Arm by it, and with that compiler. */
  arm64: () => {
    if (!existsSync(arm64Folder) || onPath('aarch64-linux-gnu-g++') === undefined) return undefined;
    const mount = ['mount', '-t', 'binfmt_misc', 'binfmt_misc', '/proc/sys/fs/binfmt_misc'];
    const asked = spawnSync('unshare', ['--user', '--map-root-user', '--mount', ...mount]);
    return asked.status === 0 ? arm64Folder : undefined;
  },
  python: () => onPath('python3'),
  bash: () => onPath('bash'),
  zsh: () => onPath('zsh'),
  fish: () => onPath('fish'),
  /** Of the version that the digests of the test set are of. */
  'espeak-ng': () => espeak(),
  /** The Python of an environment with it, which is made where pip can. */
  pycocotools: () => {
    const folder = fileURLToPath(new URL('../../build/pycocotools-venv', import.meta.url));
    const made = pythonWith(['pycocotools==2.0.11'], folder);
    return 'python' in made ? made.python : undefined;
  },
  /** The same with it: it checks manifests against the schemas of Kubernetes. */
  'kubernetes-validate': () => {
    const folder = fileURLToPath(new URL('../../build/kubernetes-validate-venv', import.meta.url));
    const made = pythonWith(['kubernetes-validate==1.37.0'], folder);
    return 'python' in made ? made.python : undefined;
  },
  /** The folder of its daemons, which start here for root alone. */
  slurm: () => {
    if (process.getuid?.() !== 0 || !['slurmctld', 'slurmd', 'munged'].every((name) => onPath(name)))
      return undefined;
    return dirname(onPath('slurmctld')!);
  },
} as const;

export type Need = keyof typeof finders;

/** Whether a list of needs in the environment has this one. */
const isIn = (list = '', need: Need): boolean => list.split(/\s+/).includes(need);

/** Where the needed thing is; undefined where this machine has none, and where `TRTFORGE_TESTS_WITHOUT` (a list of words, set in CI) leaves it out. */
export const found = (need: Need): string | undefined =>
  isIn(process.env.TRTFORGE_TESTS_WITHOUT, need) ? undefined : finders[need]();

/**
 * `describe` for tests that need something: skipped by name where it is missing, failing where
 * `TRTFORGE_TESTS_REQUIRE` (a list of words, set in CI) says it must be there.
 */
export function describeWith(need: Need, title: string, body: (where: string) => void): void {
  const where = found(need);
  if (where !== undefined) return void describe(title, () => body(where));
  const required = isIn(process.env.TRTFORGE_TESTS_REQUIRE, need);
  const name = `${title} (no ${need} on this machine)`;
  if (!required) return void describe.skip(name, () => test(need, () => {}));
  describe(name, () => {
    test(`${need} is required here`, () => {
      throw new Error(`TRTFORGE_TESTS_REQUIRE asks for ${need}, and it was not found.`);
    });
  });
}

function onPath(...names: readonly string[]): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return names
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((path) => existsSync(path));
}

function espeak(): string | undefined {
  const path = onPath('espeak-ng');
  if (path === undefined) return undefined;
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  return stdout.includes(` ${ESPEAK_VERSION} `) ? path : undefined;
}

function installedToolchain(): string | undefined {
  const root = join(cacheFolder(), 'toolchains');
  if (!existsSync(root)) return undefined;
  const others = process.arch === 'arm64' ? /-x86_64$/ : /-aarch64$/;
  return readdirSync(root)
    .filter((name) => !others.test(name))
    .map((name) => join(root, name, 'tensorrt_rtx_libs'))
    .find((folder) => existsSync(join(folder, 'libtensorrt_rtx.so.1')));
}

function resolvable(name: string): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(name);
  } catch {
    return undefined;
  }
}
