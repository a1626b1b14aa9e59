import { benchEngine } from '../../../dist/quality/bench/bench-engine.js';
import { atBatch, benchRequest } from '../bench-request.mjs';
import { figure, inTurns } from '../figures.mjs';
import { models } from '../machine.mjs';
import { measureTrtexec } from '../trtexec.mjs';

/** Inferences a second with inputs and outputs copied in every one, overlapped with computing, against trtexec. */
export async function throughput(machine, tell, problem) {
  if (machine.trtexec === null) problem('there is no trtexec to compare with');
  const { profile, batches } = models.resnet50;
  const plan = await machine.typedPlan('resnet50');
  for (const batch of batches) {
    const shapes = atBatch(profile, batch);
    const mode = { transfers: true, graph: true };
    const { ours, peer } = await inTurns(
      machine.rounds,
      {
        ours: async () => (await benchEngine(benchRequest(plan, shapes, mode), machine.context())).qps,
        peer:
          machine.trtexec === null
            ? null
            : async () => (await measureTrtexec(machine, plan, shapes, { ...mode, durationMs: 1000 })).qps,
      },
      problem,
    );
    tell(
      figure(
        `ResNet-50 FP16, batch ${batch}, graph: throughput with transfers, trtexec`,
        'calls/s',
        ours,
        peer,
        {
          atLeast: 0.98,
        },
      ),
    );
  }
}
