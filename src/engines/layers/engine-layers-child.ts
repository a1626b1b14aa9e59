import { serve } from '../../base/process/supervised-child.js';
import { planDigest } from '../plan/header.js';
import { loadEngine } from '../runtime/tensorrt/load-engine.js';
import type { LayersChildAnswer, LayersChildRequest } from './engine-layers.js';

serve(async (request, work): Promise<LayersChildAnswer> => {
  const { planPath, ...options } = request as LayersChildRequest;
  const { plugins = [] } = options;
  const engine = await loadEngine(planPath, { ...options, requirePassport: false, ...work });
  const { native, gpu, toolchain, plan } = engine;
  const { facts } = native;
  try {
    return {
      text: await native.layers().done,
      planSha256: plan.passport?.plan.sha256 ?? planDigest(plan.header),
      loaded: {
        library: `${toolchain.product} ${facts.libraryVersion}`,
        ...(plugins.length === 0 ? {} : { plugins: [...plugins] }),
        gpu: { name: gpu.name, computeCapability: gpu.computeCapability },
        profiles: facts.profiles,
        auxStreams: facts.auxStreams,
        deviceMemoryBytes: facts.deviceMemoryBytes,
        deviceMemoryBytesPerProfile: [...facts.deviceMemoryBytesPerProfile],
        streamableWeightsBytes: facts.streamableWeightsBytes,
        refittable: facts.refittable,
        loadedBytes: facts.gpuMemory.freeBefore - facts.gpuMemory.freeAfter,
      },
    };
  } finally {
    await engine.close();
  }
});
