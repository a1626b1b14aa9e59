import { existsSync } from 'node:fs';
import { loadAddon } from '../../addon/addon.js';
import { chosenGpu } from '../../addon/gpus.js';
import { type CommandRunner, runCommand } from '../../base/process/command.js';
import type { BuilderName, BuildOptions } from '../../engines/builder/options.js';
import { TrtforgeError } from '../../errors.js';
import type { Work } from '../../events.js';
import { type BenchTool, benchers } from '../../quality/bench/bench-engine.js';
import { debianPackages } from '../../tensorrt/toolchain/installed-packages.js';
import { EngineBuilder } from './builder.js';
import type { StreamsEffects } from './effects.js';
import { streamsMeter } from './meter.js';
import type { StreamsMode } from './options.js';
import type { StreamsPlan } from './streams.js';

export interface StreamsSetup {
  /** Without what the layout decides: the profile, the place and the timing cache. */
  readonly build: Omit<
    BuildOptions,
    'device' | 'profiles' | 'output' | 'timingCache' | 'modelName' | 'logFolder'
  >;
  readonly builder: BuilderName;
  readonly meter: BenchTool;
  readonly mode: StreamsMode;
  /** Which of the visible GPUs builds and measures. */
  readonly device: number;
}

/** The real builder and meter for a plan. */
export function streamsEffects(
  { inputs, paths, request }: StreamsPlan,
  setup: StreamsSetup,
  context: Work,
): StreamsEffects {
  const { build, builder, meter, mode, device } = setup;
  const { toolchain, plugins } = build;
  const loading = { toolchain, device, plugins };
  const { firstMaxBatch } = request.limits;
  return {
    builder: new EngineBuilder({
      requested: requestedBuild(setup),
      inputs,
      paths,
      firstMaxBatch,
      work: context,
    }),
    builderName: builder,
    meter: streamsMeter(meter, { mode, inputs, loading, bench: benchers[meter], work: context }),
    work: context,
  };
}

/** Kernels are chosen by timing them, so the GPU that measures is the one that builds. */
export const requestedBuild = ({ build, builder, device }: StreamsSetup): BuildOptions => ({
  ...build,
  builder,
  device,
});

/** Where DeepStream's packages and containers install it. */
const DEEPSTREAM = '/opt/nvidia/deepstream';

/** Versions of TensorRT that DeepStream on this machine loads: those of the system's packages. None without DeepStream or dpkg. */
export async function deepstreamLibraries(
  run: CommandRunner = runCommand,
  folder = DEEPSTREAM,
): Promise<readonly string[]> {
  if (!existsSync(folder)) return [];
  const packages = await debianPackages(run);
  return [
    ...new Set(packages.filter(({ name }) => /^libnvinfer\d+$/.test(name)).map(({ version }) => version)),
  ];
}

/** Why nothing can be measured here; null where there is a GPU. Throws what `requireGpu` throws besides. */
export function whyNoGpu(device: number): string | null {
  try {
    requireGpu(device);
    return null;
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code !== 'TF_GPU_UNAVAILABLE') throw error;
    return error.message;
  }
}

/** Rejects before minutes of building that nobody could measure. Throws TF_GPU_UNAVAILABLE, TF_NATIVE_NOT_BUILT, TF_NATIVE_UNSUPPORTED, TF_USAGE. */
export function requireGpu(device: number): void {
  chosenGpu(
    loadAddon().gpus(),
    device,
    'Sizing streams needs an NVIDIA GPU to measure on',
    'Run it on the GPU that will serve.',
  );
}
