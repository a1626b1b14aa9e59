import { serve } from '../../base/process/supervised-child.js';
import { holds } from '../../behaviour/facts.js';
import type { BuildFiles, ResolvedBuild } from './build.js';
import { buildInProcess } from './build-in-process.js';

const endAtOnce = () => process.kill(process.pid, 'SIGKILL');

// A builder's memory ends with its process: TensorRT 10.6 takes 1.3 s to free its 4.7 GB of kernels, and libraries crash in their exit handlers.
serve(async (request, { emit, signal }) => {
  const { build, files } = request as { readonly build: ResolvedBuild; readonly files: BuildFiles };
  // A library that cannot be asked to stop: its process ends at once instead.
  if (!holds('progress-monitor', build.toolchain))
    signal.addEventListener('abort', endAtOnce, { once: true });
  return buildInProcess(build, files, { emit, signal, keepBuilder: true });
}, endAtOnce);
