import type { ExportedFile, Exporter } from '../../../engines/exports/exporter.js';
import { canonicalJson } from '../../../engines/identity/canonical-json.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import { modelConfig } from './config.js';
import { refused, type ServedModel, serve } from './served-model.js';
import { initialStates, warmUps } from './tensor-files.js';

/** Where a model's plan for a capability lies below its version. */
export const planFile = ({ passport }: StoredEngine): string =>
  `sm_${passport.identity.document.target.computeCapabilities.join('_')}.plan`;

/** A model repository of Triton: `NAME/VERSION/sm_89.plan` with passports, what the configuration refers to, and last `NAME/config.pbtxt`. */
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
  const warmUp = warmUps(model);
  const states = initialStates(model);
  for (const [file, bytes] of [...warmUp.files, ...states.files]) yield { path: `${name}/${file}`, bytes };
  const config = modelConfig(model, { warmUp: warmUp.config, states: states.config, planFile });
  if (config.includes('label_filename')) yield { path: `${name}/labels.txt`, text: `${labels.join('\n')}\n` };
  // Last: a model without its configuration is not loaded.
  yield { path: `${name}/config.pbtxt`, text: config };
}

/** A name of a folder and in a URL, made of a model's. */
export const plainName = (text: string): string =>
  text.replace(/[^A-Za-z0-9_.-]+/g, '_').replace(/^[^A-Za-z0-9_]+/, '') || 'model';

/** A model for each model and recipe among the engines. Throws TF_SERVING_REFUSED. */
function defaultModels(engines: readonly StoredEngine[]): readonly ServedModel[] {
  const families = [...new Set(engines.map(engineFamily))];
  const models = families.map((family) => {
    const own = engines.filter((engine) => engineFamily(engine) === family);
    return serve(own, {
      name: plainName(own[0]!.passport.model.name),
      version: null,
      instances: 1,
      delayMicroseconds: null,
      labels: [],
      gpu: undefined,
      contract: undefined,
      force: false,
    });
  });
  const twice = models.find(({ name }, at) => models.findIndex((other) => other.name === name) !== at);
  if (twice !== undefined)
    throw refused(
      `Several models of the export would be ${twice.name}.`,
      'Export each with its name: trtforge triton export ENGINE -o REPO --name NAME',
    );
  return models;
}

/** What engines of one model, recipe and TensorRT have in common, whatever their GPU is. */
export const engineFamily = ({ passport }: Pick<StoredEngine, 'passport'>): string => {
  const { document } = passport.identity;
  return canonicalJson({ ...document, target: { ...document.target, computeCapabilities: [] } });
};

/** With the defaults of `triton export`. */
export const defaultExporter = tritonExporter(defaultModels);
