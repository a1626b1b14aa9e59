import { chosenGpu, visibleGpus } from '../../../addon/chosen-gpu.js';
import { loadOnnxRuntime } from '../../../addon/onnx-runtime.js';
import { readPlanHeader } from '../../../engines/plan/header.js';
import type { BackEnd } from '../../../engines/runtime/back-end.js';
import {
  chooseOrtLibrary,
  howToInstall,
  providerNames,
} from '../../../engines/runtime/onnxruntime/find-library.js';
import { isOrtProvider, type OrtProvider } from '../../../engines/runtime/onnxruntime/ort-provider.js';
import { toolchainForPlan } from '../../../engines/runtime/tensorrt/toolchain-for-plan.js';
import { TrtforgeError } from '../../../errors.js';
import { factsOfOnnxRuntime } from '../../../quality/doctor/onnxruntime.js';
import type { CompareOpenOptions } from './runnable-file.js';

/**
 * Throws what opening a session would throw for what this machine lacks, and opens none: TF_NATIVE_…, TF_ONNXRUNTIME_MISSING, TF_GPU_UNAVAILABLE, and for an
 * engine that is there TF_TOOLCHAIN_NOT_FOUND and TF_ENGINE_VERSION_MISMATCH. `engine` is its file.
 */
export async function assertRunsHere(
  { name, provider, honours }: BackEnd,
  engine: string | null,
  { device = 0, onnxRuntime, toolchain, allowHostCode = false }: CompareOpenOptions,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  if (provider !== null && isOrtProvider(provider)) await assertProvider(provider, onnxRuntime, environment);
  if (honours.has('device')) chosenGpu(visibleGpus(), device, `${name} needs an NVIDIA GPU`);
  if (engine === null) return;
  const plan = { path: engine, header: readPlanHeader(engine), passport: null };
  await toolchainForPlan(plan, { toolchain, allowHostCode, environment });
}

async function assertProvider(
  provider: OrtProvider,
  named: string | undefined,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  if (provider !== 'cpu') loadOnnxRuntime();
  const library = chooseOrtLibrary(provider, named, environment);
  if (library === undefined)
    throw new TrtforgeError('TF_ONNXRUNTIME_MISSING', 'ONNX Runtime is not installed.');
  if (provider === 'cpu') return;
  const { why, providers } = await factsOfOnnxRuntime(library, environment);
  const missing = providers.find((each) => each.name === provider)?.missing ?? [];
  if (why === null && missing.length === 0) return;
  throw new TrtforgeError(
    'TF_ONNXRUNTIME_MISSING',
    `ONNX Runtime cannot load its ${providerNames[provider]} provider: ${why ?? `${missing.join(', ')} cannot be loaded`}.`,
    { remedy: howToInstall(provider), details: { library: library.path, missing } },
  );
}
