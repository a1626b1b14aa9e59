import { openFile } from '../../base/files/byte-source.js';
import { runSupervised } from '../../base/process/supervise.js';
import { recordedBuilder } from '../../tensorrt/toolchain/environment.js';
import type { BuildContext, BuildFiles, BuildOutcome, ResolvedBuild } from './options.js';
import type { refitInProcess } from './refit-in-process.js';

/**
 * Builds a plan in a child process, so that an abort inside the library ends as an error and its memory comes back.
 * Errors: TF_OPTION_UNSUPPORTED, TF_TARGET_UNSUPPORTED, TF_PROFILE_INVALID, TF_MODEL_REJECTED, TF_BUILDER_UNAVAILABLE, TF_BUILD_FAILED,
 * TF_LIBRARY_LOAD_FAILED, TF_LIBRARY_UNSUPPORTED, TF_FILE_NOT_FOUND, TF_WRITE_FAILED, TF_GPU_MEMORY, TF_CANCELLED, TF_CHILD_DIED.
 */
export const buildPlan = (
  build: ResolvedBuild,
  files: BuildFiles,
  context: BuildContext,
): Promise<BuildOutcome> => inChild(build, files, context, `building ${build.modelPath}`);

/** The same, or what replaces the weights of a plan. `doing` completes "Cancelled while …". */
export async function inChild(
  build: ResolvedBuild,
  files: BuildFiles,
  context: BuildContext,
  doing: string,
  refit?: Parameters<typeof refitInProcess>[2],
): Promise<BuildOutcome> {
  openFile(files.modelPath).close();
  const { environment = process.env, ...work } = context;
  const { toolchain, env } = recordedBuilder(build.toolchain, environment);
  const outcome = await runSupervised(
    new URL('../../../dist/engines/builder/build-child.js', import.meta.url),
    { build: { ...build, toolchain }, files, refit },
    { ...work, env, doing },
  );
  return outcome as BuildOutcome;
}
