import { behaviour, describeComputeCapability, isIntegrated, serves } from '../../behaviour/facts.js';
import { releaseOf } from '../../tensorrt/toolchain/releases.js';
import type { DoctorFacts } from './doctor-facts.js';
import { type Finding, findingsOf, gibibytes } from './finding.js';

const gpu = findingsOf('gpu');

const drivers: Readonly<Record<number, number>> = behaviour['cuda-driver'].value;

export function judgeGpu({ gpus: view, toolchains }: DoctorFacts): readonly Finding[] {
  if (view === undefined) return [];
  if (view.gpus.length === 0) {
    const why = view.reason === null ? '' : ` (${view.reason.replace(/\.$/, '')})`;
    const driver =
      view.driverVersion === null ? '' : ` The kernel driver ${view.driverVersion} is loaded, though.`;
    return [
      gpu.info(
        'none',
        `No NVIDIA GPU is usable here${why}.${driver}`,
        view.driverVersion === null
          ? 'Nothing is needed to inspect, convert, verify and build with tensorrt-rtx. To run engines: a GPU, its driver, and in a container docker run --gpus all.'
          : 'In a container run it with --gpus all; outside, check nvidia-smi and that the user may open /dev/nvidia*.',
      ),
    ];
  }
  const isOneOfSeveral = view.gpus.length > 1;
  const found = view.gpus.map((each) =>
    gpu.ok(
      `device-${each.index}`,
      `${isOneOfSeveral ? `${each.index}: ` : ''}${each.name}, ${describeComputeCapability(each.computeCapability)}, ${gibibytes(each.memoryBytes)}`,
    ),
  );
  const cuda = view.cudaVersion === null ? '' : `, CUDA up to ${view.cudaVersion}`;
  const driver = gpu.ok('driver', `Driver ${view.driverVersion ?? 'of unknown version'}${cuda}`);
  return [
    ...found,
    driver,
    ...bySmiOnly(view),
    ...sharedMemory(view),
    ...unserved(view),
    ...oldDriver(view.driverVersion, toolchains),
  ];
}

function bySmiOnly({ source, reason }: NonNullable<DoctorFacts['gpus']>): readonly Finding[] {
  if (source !== 'nvidia-smi') return [];
  return [
    gpu.warning(
      'driver-silent',
      `nvidia-smi shows the GPUs, but trtforge cannot ask the CUDA driver: ${reason ?? 'no reason reported'}`,
      'Check that libcuda.so.1 is on the loader path and that machine.addon above is ok.',
    ),
  ];
}

function sharedMemory({ gpus }: NonNullable<DoctorFacts['gpus']>): readonly Finding[] {
  const shared = gpus.filter(({ computeCapability }) => isIntegrated(computeCapability));
  if (shared.length === 0) return [];
  const names = shared.map(({ name }) => name).join(', ');
  return [
    gpu.info(
      'shared-memory',
      `${names} has no memory of its own: engines and builds take that of the processor, beside what programs take there.`,
    ),
  ];
}

function unserved({ gpus }: NonNullable<DoctorFacts['gpus']>): readonly Finding[] {
  const outside = gpus.filter((each) => serves(releaseOf(undefined), each.computeCapability) === 'no');
  if (outside.length === 0) return [];
  const names = [...new Set(outside.map((each) => describeComputeCapability(each.computeCapability)))];
  return [
    gpu.info(
      'not-rtx',
      `tensorrt-rtx does not serve ${names.join(', ')}: it can build here for other GPUs, not run.`,
      'Use the full TensorRT for engines that run on this GPU.',
    ),
  ];
}

function oldDriver(driverVersion: string | null, list: DoctorFacts['toolchains']): readonly Finding[] {
  const series = Number(driverVersion?.split('.')[0]);
  const needing = (list?.toolchains ?? []).filter((each) => series < (drivers[each.cudaMajor ?? 0] ?? 0));
  return needing.map((each) =>
    gpu.warning(
      'driver-old',
      `${each.name} is built for CUDA ${each.cudaMajor}, which needs driver ${drivers[each.cudaMajor ?? 0]} or newer; this is ${driverVersion}.`,
      'Update the driver, or use the CUDA 12 build of the same version.',
    ),
  );
}
