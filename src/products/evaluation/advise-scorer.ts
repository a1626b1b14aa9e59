import { mkdirSync, symlinkSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { listFolder, removeIfAllowed } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/folders.js';
import { allBut, defaultsOf } from '../../base/options/option.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import type { Recogniser, Scorer, ScorerOf } from '../../quality/tasks/task.js';
import { type TaskSettings, taskFor } from './compare/task.js';
import { detectionOptions } from './options.js';

/** Defaults of `eval detector`; every file is there, and nothing is timed. */
const defaults = {
  ...defaultsOf(allBut(detectionOptions, 'labels', 'imageIds', 'maxImages')),
  warmupRuns: 0,
  skipLatency: 0,
};

/** `ScorerOf`, with other settings of the task where there are any. */
export function scorerFor(
  { bundle, ...request }: Parameters<ScorerOf>[0] & Partial<TaskSettings>,
  recognisers: readonly Recogniser[],
  context: WorkContext,
): Scorer {
  const task = taskFor({ ...defaults, ...request, model: bundle ?? request.model }, recognisers);
  const folder = bundle === undefined ? undefined : dirname(resolve(bundle));
  if (task.id === 'wer' && folder !== dirname(resolve(request.model)))
    throw new TrtforgeError('TF_USAGE', `${request.model} is scored by words as a part of a bundle.`, {
      remedy: 'Pass the model_meta.json beside it: --bundle model_meta.json.',
    });
  const score = async (file: string) =>
    (await task.run(file, {}, context))?.metrics.find(({ name }) => name === task.metric.name)?.value ?? null;
  return {
    task: task.id,
    ...task.metric,
    digest: () => task.digest(context),
    score: async (model) =>
      bundle === undefined ? score(model) : withBundle(bundle, request.model, model, (meta) => score(meta)),
  };
}

/** The bundle with a candidate in the place of one of its models, for as long as `use` takes. */
async function withBundle<T>(
  bundle: string,
  model: string,
  candidate: string,
  use: (meta: string) => Promise<T>,
): Promise<T> {
  const folder = join(makeScratch('bundle'), 'bundle');
  try {
    mkdirSync(folder);
    const from = dirname(resolve(bundle));
    for (const name of listFolder(from)) {
      const isReplaced = name === basename(model);
      symlinkSync(isReplaced ? resolve(candidate) : join(from, name), join(folder, name));
    }
    return await use(join(folder, basename(bundle)));
  } finally {
    removeIfAllowed(dirname(folder));
  }
}
