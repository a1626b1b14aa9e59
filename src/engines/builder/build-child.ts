import { serve } from '../../base/process/supervised-child.js';
import { holds } from '../../behaviour/facts.js';
import { CAPTURE_FILE } from '../../tensorrt/toolchain/environment.js';
import { buildInProcess } from './build-in-process.js';
import type { BuildFiles, ResolvedBuild } from './options.js';
import { refitInProcess } from './refit-in-process.js';

const endAtOnce = () => process.kill(process.pid, 'SIGKILL');
// The recorder of a capture writes what it has when the process ends in order.
const end = process.env[CAPTURE_FILE] === undefined ? endAtOnce : () => process.exit(0);

// A builder's memory ends with its process: TensorRT 10.6 takes 1.3 s to free its 4.7 GB of kernels, and libraries crash in their exit handlers.
serve(async (request, work) => {
  const { build, files, refit } = request as {
    readonly build: ResolvedBuild;
    readonly files: BuildFiles;
    readonly refit?: Parameters<typeof refitInProcess>[2];
  };
  // A library that cannot be asked to stop: its process ends at once instead.
  if (refit !== undefined || !holds('progress-monitor', build.toolchain))
    work.signal.addEventListener('abort', endAtOnce, { once: true });
  if (refit !== undefined) return refitInProcess(build, files, refit, work);
  return buildInProcess(build, files, { ...work, keepBuilder: true });
}, end);
