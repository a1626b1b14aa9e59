import { openFile } from '../../base/files/byte-source.js';
import { runSupervised } from '../../base/process/supervise.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import { builderEnvironment } from '../../tensorrt/toolchain/process-environment.js';
import type { BuildChildRequest, BuildOutcome, BuildRequest } from './build-request.js';
import { builderSettings } from './builder-settings.js';

export interface PlanBuildContext {
  readonly emit: EventListener;
  readonly signal?: AbortSignal;
  /** How long a cancelled build may take to stop by itself before its process is killed. */
  readonly graceMs?: number;
  /** Whether the library's verbose lines become events too. */
  readonly verbose?: boolean;
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * Builds a plan in a child process, so that an abort inside the library ends as an error and its memory comes back.
 * What can be refused without the library is refused before the child starts.
 * Errors: TF_OPTION_UNSUPPORTED, TF_TARGET_UNSUPPORTED, TF_PROFILE_INVALID, TF_MODEL_REJECTED, TF_BUILDER_UNAVAILABLE, TF_BUILD_FAILED,
 * TF_LIBRARY_LOAD_FAILED, TF_LIBRARY_UNSUPPORTED, TF_FILE_NOT_FOUND, TF_WRITE_FAILED, TF_GPU_MEMORY, TF_CANCELLED, TF_CHILD_DIED.
 */
export async function buildPlan(request: BuildRequest, options: PlanBuildContext): Promise<BuildOutcome> {
  builderSettings(request.recipe, request.toolchain);
  checkTarget(request);
  openFile(request.modelPath).close();
  const { verbose = false, env = process.env, ...supervise } = options;
  const child: BuildChildRequest = { build: request, verbose };
  const outcome = await runSupervised(
    new URL('../../../dist/engines/builder/build-child.js', import.meta.url),
    child,
    {
      ...supervise,
      env: builderEnvironment(request.toolchain, env),
      doing: `building ${request.givenModel ?? request.modelPath}`,
    },
  );
  return outcome as BuildOutcome;
}

function checkTarget({ toolchain, computeCapabilities }: BuildRequest): void {
  if (toolchain.product === 'tensorrt-rtx' || computeCapabilities.length === 0) return;
  throw new TrtforgeError(
    'TF_TARGET_UNSUPPORTED',
    `TensorRT ${toolchain.version} builds for the GPU it runs on, so compute capabilities (${computeCapabilities.map((capability) => `sm_${capability}`).join(', ')}) cannot be asked for.`,
  );
}
