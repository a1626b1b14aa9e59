import { serve } from '../system/supervised-child.js';
import { generationOf } from '../toolchain/abi.js';
import { buildInProcess } from './build-in-process.js';
import type { BuildChildRequest } from './build-request.js';

serve(async (request, { emit, signal }) => {
  const { build, verbose } = request as BuildChildRequest;
  // TensorRT 8.6 cannot be asked to stop: its process ends at once instead.
  if (generationOf(build.toolchain) === '8')
    signal.addEventListener('abort', () => process.kill(process.pid, 'SIGKILL'), { once: true });
  return buildInProcess(build, { emit, signal, verbose });
});
