import { plural } from '../../../base/text/quantity.js';
import { type Plan, type PlanStep, step } from '../../../cli/plan.js';
import type { OpenContext, OpenOptions } from '../../../engines/runtime/back-end.js';
import { lookAtCandidate } from '../run/candidate.js';
import { type ImageRequest, preprocessingFor } from '../run/images.js';

/** A network as it would be run. */
interface PlannedNetwork {
  readonly file: string;
  readonly backend: string;
  readonly size: string;
}

/** Opens a network, checks that it takes images, and closes it. Throws what opening it throws, and TF_SESSION_BINDING. */
export async function lookAtNetwork(
  file: string,
  open: OpenOptions,
  { preprocess, imgsz }: Pick<ImageRequest, 'preprocess' | 'imgsz'>,
  context: OpenContext,
): Promise<PlannedNetwork> {
  const { backend, found } = await lookAtCandidate(file, open, context, (session) =>
    preprocessingFor(session, preprocess, imgsz),
  );
  return { file, backend, size: `${found.width}x${found.height}` };
}

/** What an evaluation over images reads, runs and writes. */
export function imagePlan(
  { imagesDir, preprocess, warmupRuns }: Pick<ImageRequest, 'imagesDir' | 'preprocess' | 'warmupRuns'>,
  {
    reads,
    images,
    runs,
    writes,
    resolved,
  }: {
    readonly reads: readonly PlanStep[];
    readonly images: number;
    readonly runs: readonly PlannedNetwork[];
    readonly writes: readonly string[];
    readonly resolved: Plan['resolved'];
  },
): Plan {
  const count = plural(images, 'image');
  const warmUp = warmupRuns === 0 ? '' : ` after ${plural(warmupRuns, 'warm-up run')}`;
  return {
    steps: [
      ...reads,
      step('read', imagesDir, { detail: `${count}, prepared for ${preprocess}` }),
      ...runs.map(({ file, backend, size }) =>
        step('run', file, { detail: `${backend}; ${count} of ${size}${warmUp}` }),
      ),
      ...writes.map((path) => step('write', path)),
    ],
    resolved: { images, preprocess, ...resolved },
  };
}
