import { serve } from '../../base/process/supervised-child.js';
import { planDigest } from '../plan/header.js';
import { answerOf } from '../runtime/tensorrt/load-engine.js';
import type { LayersChildAnswer } from './engine-layers.js';

serve((request, work) =>
  answerOf(
    request,
    work,
    async ({ native, gpu, toolchain, plan }, { plugins = [] }): Promise<LayersChildAnswer> => {
      const { facts } = native;
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
    },
  ),
);
