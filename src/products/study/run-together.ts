import { preparedSamples } from '../../engines/calibration/read-samples.js';
import type { SampleSource } from '../../engines/calibration/sample-source.js';
import { inTypesOf } from '../../engines/run/input-dtype.js';
import type { OpenedSession } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import type { WorkContext } from '../../events.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';

/** Where models run. */
export interface StudyPlace {
  readonly threads: number | undefined;
  readonly context: WorkContext;
}

/** The first samples of some sources, in the types of a model's inputs. Throws what opening the model and reading samples throw. */
export async function firstSamples(
  model: string,
  sources: readonly SampleSource[],
  most: number,
  { threads, context }: StudyPlace,
): Promise<readonly NamedTensors[]> {
  const samples: NamedTensors[] = [];
  await using session = await openSession(model, { threads }, context);
  for await (const sample of preparedSamples(sources, session.inputs, context.signal)) {
    if (samples.length === most) break;
    samples.push(sample);
  }
  return samples;
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
        outputs.push(
          await session.run(inTypesOf(session.inputs, inputs, 'the reference'), { signal: context.signal }),
        );
      take(outputs, sample);
    }
  } finally {
    await Promise.all(sessions.map((session) => session.close()));
  }
}
