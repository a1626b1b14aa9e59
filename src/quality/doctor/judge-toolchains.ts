import type { DoctorFacts } from './doctor-facts.js';
import { type Finding, findingsOf } from './finding.js';
import type { ListedToolchain } from './toolchain-list.js';

const tensorrt = findingsOf('tensorrt');

export function judgeToolchains({
  toolchains: list,
  gpus,
  trtexecs,
  machine,
}: DoctorFacts): readonly Finding[] {
  if (list === undefined) return [];
  const damaged = list.damaged.map(({ path, why }) =>
    tensorrt.warning('damaged', `${path}: ${why}`, 'Install its package again, or remove it.'),
  );
  return [
    ...list.toolchains.map(judgeOne),
    ...damaged,
    ...judgeBuilding(list.toolchains, machine?.platform ?? 'linux'),
    ...judgeTrtexecs(trtexecs ?? [], (gpus?.gpus.length ?? 0) > 0),
  ];
}

function judgeOne(toolchain: ListedToolchain): Finding {
  const { name, foundBy, folder, build, run } = toolchain;
  const where = `${name}, ${foundBy}, ${folder}`;
  if (build.can && run.can) return tensorrt.ok('toolchain', `${where}: builds and runs here`);
  if (build.can) return tensorrt.ok('toolchain', `${where}: builds here; does not run: ${run.why}`);
  if (run.can) return tensorrt.ok('toolchain', `${where}: runs here; does not build: ${build.why}`);
  return tensorrt.info('toolchain', `${where}: ${build.why}`);
}

function judgeBuilding(toolchains: readonly ListedToolchain[], platform: string): readonly Finding[] {
  if (toolchains.some(({ build }) => build.can) || platform !== 'linux') return [];
  return [
    tensorrt.warning(
      toolchains.length === 0 ? 'none' : 'no-builder',
      toolchains.length === 0
        ? 'No TensorRT is installed where trtforge looks.'
        : 'No TensorRT found can build here.',
      'Run `trtforge toolchain install tensorrt-rtx`: it builds without a GPU. For a full TensorRT elsewhere set TENSORRT_HOME.',
    ),
  ];
}

function judgeTrtexecs(trtexecs: NonNullable<DoctorFacts['trtexecs']>, hasGpu: boolean): readonly Finding[] {
  if (trtexecs.length === 0) {
    const what = 'trtexec is not on PATH nor in its usual places; --builder trtexec needs it.';
    return hasGpu
      ? [
          tensorrt.info(
            'trtexec',
            what,
            'It comes with libnvinfer-bin, the archive and the NGC container, not with pip.',
          ),
        ]
      : [];
  }
  return trtexecs.map(({ path, version }) =>
    version === null
      ? tensorrt.warning(
          'trtexec',
          `${path} does not state its version.`,
          'Run it with --help: its libraries may be missing.',
        )
      : tensorrt.ok('trtexec', `trtexec ${version}, ${path}`),
  );
}
