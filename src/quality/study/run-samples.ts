import type { OpenContext, OpenedSession } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { inTypesOf } from '../verify/sample-runs.js';

/** Where models run. */
export interface StudyPlace {
  readonly threads: number | undefined;
  readonly context: OpenContext;
}

/** Runs models side by side, sample by sample: no more than the outputs of one sample are in memory. Throws what opening and running throw. */
export async function runSamples(
  paths: readonly string[],
  samples: readonly NamedTensors[],
  { threads, context }: StudyPlace,
  take: (outputs: readonly NamedTensors[], sample: number) => void,
): Promise<void> {
  const sessions: OpenedSession[] = [];
  try {
    for (const path of paths) sessions.push(await openSession(path, { threads }, context));
    for (const [sample, inputs] of samples.entries()) {
      const outputs: NamedTensors[] = [];
      for (const session of sessions)
        outputs.push(await session.run(inTypesOf(session.inputs, inputs), { signal: context.signal }));
      take(outputs, sample);
    }
  } finally {
    for (const session of sessions) await session.close();
  }
}
