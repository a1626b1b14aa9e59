import { benchEngine } from '../../../dist/quality/bench/bench-engine.js';
import { atBatch, benchRequest } from '../bench-request.mjs';
import { figure, inTurns } from '../figures.mjs';
import { models } from '../machine.mjs';
import { measureTrtexec } from '../trtexec.mjs';

/** GPU compute time as trtforge and trtexec report it of the same plan: batch 1 and 64, graph on and off. */
export async function gpuTime(machine, tell, problem) {
  if (machine.trtexec === null) problem('there is no trtexec to compare with');
  const { profile, batches } = models.resnet50;
  const plan = await machine.typedPlan('resnet50');
  for (const batch of batches) {
    const shapes = atBatch(profile, batch);
    for (const graph of [true, false]) {
      const mode = { transfers: false, graph };
      const { ours, peer } = await inTurns(
        machine.rounds,
        {
          ours: async () =>
            (await benchEngine(benchRequest(plan, shapes, mode), machine.context())).gpuMs.median,
          peer:
            machine.trtexec === null
              ? null
              : async () =>
                  (await measureTrtexec(machine, plan, shapes, { ...mode, durationMs: 1000 })).gpuMs,
        },
        problem,
      );
      const what = `ResNet-50 FP16, batch ${batch}, ${graph ? 'graph' : 'no graph'}: median GPU compute time, trtexec`;
      tell(figure(what, 'ms', ours, peer, { within: 0.01 }));
    }
  }
}
