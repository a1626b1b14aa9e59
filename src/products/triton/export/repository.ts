import { canonicalJson } from '../../../base/files/digest.js';
import type { ExportedFile, Exporter } from '../../../engines/exports/exporter.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import { refused, type ServedModel, serve } from './served-model.js';
import { planFile, type TensorFiles } from './tensor-files.js';
import { configOf } from './write-config.js';

/** A model repository of Triton: `NAME/VERSION/sm_89.plan` with its passport, what the configuration names, and last `NAME/config.pbtxt`. */
export const tritonExporter = (
  modelsOf: (engines: readonly StoredEngine[]) => readonly ServedModel[],
): Exporter => ({
  id: 'triton',
  *files(engines): Iterable<ExportedFile> {
    for (const model of modelsOf(engines)) yield* filesOf(model);
  },
});

function* filesOf(model: ServedModel): Iterable<ExportedFile> {
  const { name, version, plans, labels } = model;
  for (const engine of new Set(plans.map((plan) => plan.engine)))
    yield { path: `${name}/${version}/${planFile(engine)}`, engine };
  const tensors: TensorFiles = new Map();
  const config = configOf(model, tensors);
  for (const [file, bytes] of tensors) yield { path: `${name}/${file}`, bytes };
  if (config.includes('label_filename')) yield { path: `${name}/labels.txt`, text: `${labels.join('\n')}\n` };
  // Last: a model without its configuration is not loaded.
  yield { path: `${name}/config.pbtxt`, text: config };
}

/** A name of a folder and in a URL, made of a model's. */
export const plainName = (text: string): string =>
  text.replace(/[^\w.-]+/g, '_').replace(/^[.-]+/, '') || 'model';

/** The exporter of `triton export` without options, for each model and recipe among the engines. Throws TF_SERVING_REFUSED. */
export const defaultExporter = tritonExporter((engines) => {
  const families = [...new Set(engines.map(engineFamily))];
  const models = families.map((family) => {
    const own = engines.filter((engine) => engineFamily(engine) === family);
    const name = plainName(own[0]!.passport.model.name);
    return serve(own, { name, version: 1, isPinned: false, labels: [], contract: undefined });
  });
  const names = new Set(models.map(({ name }) => name));
  if (names.size === models.length) return models;
  throw refused(
    `Several models would have one of the names ${[...names].join(', ')}.`,
    'Export each with its name: trtforge triton export ENGINE -o REPO --name NAME',
  );
});

/** The identity that engines of one model, recipe and TensorRT have in common, whatever their GPU is. */
export function engineFamily({ passport }: Pick<StoredEngine, 'passport'>): string {
  const { document } = passport.identity;
  return canonicalJson({ ...document, target: { ...document.target, computeCapabilities: [] } });
}
