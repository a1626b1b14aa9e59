import { existsSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import {
  LARGEST_DOCUMENT,
  listFolder,
  readJson,
  readText,
  removeIfAllowed,
  statIfThere,
} from '../../../base/files/files.js';
import { makeFolder, pathBelow } from '../../../base/files/folders.js';
import { isRecord } from '../../../base/files/json.js';
import { besidePath, moveInto, publishFile, syncFolder, writeFailed } from '../../../base/files/publish.js';
import { chooseEngines, type ExportedFile, writeExport } from '../../../engines/exports/exporter.js';
import type { LocalStore } from '../../../engines/store/local.js';
import { openLocalStore } from '../../../engines/store/open-stores.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import { openTrust, verifyTrusted } from '../../../engines/store/trust.js';
import { TrtforgeError } from '../../../errors.js';
import { type WorkContext, workOf } from '../../../events.js';
import { readContract } from '../../../formats/contract/file.js';
import { type BundleMeta, logitsOf, readMeta } from '../../../formats/contract/model-meta.js';
import { pairStates } from '../../../formats/contract/state.js';
import { readLabels } from '../../../formats/images/labels.js';
import { knownStates } from '../engine.js';
import type { TritonExportRequest } from './options.js';
import { engineFamily, plainName, tritonExporter } from './repository.js';
import { refused, type ServedModel, type Serving, serve } from './served-model.js';
import { planFile } from './tensor-files.js';

export const tritonExportSchema = z.object({
  schema: z.literal('trtforge.triton-export/1'),
  repository: z.string(),
  models: z.array(
    z.object({
      name: z.string(),
      version: z.int().positive(),
      /** 0: Triton does not batch, and shapes are complete. */
      maxBatchSize: z.int().nonnegative(),
      /** In the order they were written, below the repository. */
      files: z.array(z.string()),
      /** `capability` as `8.9` */
      plans: z.array(z.object({ capability: z.string(), identity: z.string(), path: z.string() })),
      /** The states that Triton keeps between the requests of a sequence. */
      states: z.array(z.object({ input: z.string(), output: z.string(), initial: z.number() })),
    }),
  ),
  /** A program that decodes with the models of a bundle, and its data, below the repository. */
  client: z.array(z.string()),
  warnings: z.array(z.string()),
});
export interface TritonExport extends z.infer<typeof tritonExportSchema> {}

/**
 * Writes engines as models of a repository. Throws TF_USAGE for what cannot be a model's name, TF_SERVING_REFUSED, and what reading engines, contract, labels and meta file throws.
 *
 * ```ts
 * const exported = await exportModels({ engines: ['resnet50.engine'], output: 'models', delay: 500 });
 * use(exported.models);
 * ```
 */
export async function exportModels(
  request: TritonExportRequest,
  context?: WorkContext,
): Promise<TritonExport> {
  const { environment } = workOf(context);
  const { engines, output: repository, contract: contractFile, bundle } = request;
  const { labels: labelFile = labelsBeside(engines), force = false } = request;
  if (request.name !== undefined) assertModelName(request.name);
  const store = openLocalStore(request.store, environment, openTrust(request, environment));
  const chosen = await enginesNamed(engines, store);
  const contract = contractFile === undefined ? undefined : readContract(contractFile);
  const labels = labelFile === undefined ? [] : readLabels(labelFile);
  const served = (name: string, own: readonly StoredEngine[], states: Serving['contract']) => {
    const version = request.version ?? nextVersion(repository, name);
    const isPinned = request.version !== undefined;
    return serve(own, { ...request, name, version, isPinned, labels, contract: states });
  };
  const meta = bundle === undefined ? undefined : readMeta(bundle);
  const title = meta === undefined ? chosen[0]!.passport.model.name : (meta.modelName ?? 'bundle');
  const start = request.name ?? plainName(title.split('/').at(-1)!);
  const models =
    meta === undefined
      ? [served(start, chosen, contract)]
      : componentsOf(chosen).map(([role, own]) => {
          const states = role === 'encoder' ? contract : undefined;
          return served(`${start}_${role}`, own, states ?? statesOfComponent(own[0]!));
        });
  const client = meta === undefined ? [] : clientFiles(start, models, meta);
  const files = await publishModels(models, repository, store, force);
  for (const [name, content] of client) publishFile(join(repository, name), content);
  return {
    schema: 'trtforge.triton-export/1',
    repository,
    models: models.map(({ name, version, maxBatch, plans, states }) => ({
      name,
      version,
      maxBatchSize: maxBatch,
      files: files.flatMap(({ path }) => (path.startsWith(`${name}/`) ? [path] : [])),
      plans: plans.map(({ capability, engine }) => ({
        capability,
        identity: engine.identity,
        path: `${name}/${version}/${planFile(engine)}`,
      })),
      states: states.map((state) => ({ ...state, input: state.input.name, output: state.output.name })),
    })),
    client: client.map(([name]) => name),
    warnings: [...(meta?.warnings ?? []), ...models.flatMap(({ warnings }) => warnings)],
  };
}

/** A folder, and a part of a URL. */
function assertModelName(name: string): void {
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$/.test(name)) return;
  throw new TrtforgeError('TF_USAGE', `${JSON.stringify(name)} cannot be the name of a model.`, {
    remedy: 'Use letters, digits, "_", "-" and ".", beginning with a letter, a digit or "_".',
  });
}

/** The config.json of a model from Hugging Face, where it names classes. */
const labelsBeside = (engines: readonly string[]): string | undefined =>
  engines
    .map((engine) => join(dirname(engine), 'config.json'))
    .find((path) => {
      const content = readJson(path);
      return isRecord(content) && 'id2label' in content;
    });

/** By the known answer, else by names: a bundle has a contract for its encoder at most. */
function statesOfComponent({ passport }: StoredEngine): Serving['contract'] {
  const known = knownStates(passport);
  const { inputs, outputs } = passport.plan;
  return { inputs: [], state: known.length > 0 ? known : pairStates(inputs, outputs) };
}

/** Engines by file, or of the store; a part of a name there brings those of the same model and recipe for other GPUs, an identity does not. */
async function enginesNamed(names: readonly string[], store: LocalStore): Promise<readonly StoredEngine[]> {
  const found: StoredEngine[] = [];
  for (const name of names) {
    if (statIfThere(name)?.isFile() === true) {
      const { passport, signature } = await verifyTrusted(store.trust, name);
      const identity = passport.identity.digest;
      found.push({ identity, planPath: name, passport, signature, readablePath: null });
      continue;
    }
    const engines = await soundEngines([name], store);
    const isIdentity = engines.some(({ identity }) => identity.startsWith(name));
    found.push(...(isIdentity ? engines : await ofFamilies(engines, store)));
  }
  // The same engine from two places is one.
  return [...new Map(found.map((engine) => [engine.passport.plan.sha256, engine])).values()];
}

/** All that the store has of the same models and recipes. */
async function ofFamilies(
  engines: readonly StoredEngine[],
  store: LocalStore,
): Promise<readonly StoredEngine[]> {
  const families = engines.map(engineFamily);
  const models = engines.map(({ passport }) => passport.identity.document.model);
  const same: string[] = [];
  for (const { identity, model } of await store.list()) {
    const passport = models.includes(model ?? '') ? await store.passport(identity) : undefined;
    if (passport !== undefined && families.includes(engineFamily({ passport }))) same.push(identity);
  }
  return soundEngines(same, store);
}

async function soundEngines(names: readonly string[], store: LocalStore): Promise<readonly StoredEngine[]> {
  const { engines, bad } = await chooseEngines(store, names);
  for (const { error } of bad) throw error;
  return engines;
}

/** After those that are there. */
function nextVersion(repository: string, name: string): number {
  const versions = listFolder(join(repository, name)).filter((entry) => /^[1-9]\d*$/.test(entry));
  return Math.max(0, ...versions.map(Number)) + 1;
}

/**
 * Writes models into a repository that a server may be polling: everything is prepared beside it, on the same file system. A new model appears by one rename; of
 * one that is there the version comes first, then what the configuration names, and the configuration last.
 */
async function publishModels(
  models: readonly ServedModel[],
  repository: string,
  { trust }: LocalStore,
  force: boolean,
): Promise<readonly ExportedFile[]> {
  for (const model of force ? [] : models) rejectReplacing(model, repository);
  const pending = besidePath(resolve(repository));
  try {
    const exporter = tritonExporter(() => models);
    const files = await writeExport(exporter, [], pending, { trust });
    makeFolder(repository);
    for (const { name, version } of models) {
      const own = files.filter(({ path }) => path.startsWith(`${name}/`));
      const before = pathBelow(repository, name, String(version));
      if (force && existsSync(before)) renameSync(before, join(pending, `${name}.replaced`));
      publishModel(pathBelow(repository, name), join(pending, name), String(version), own);
    }
    syncFolder(repository);
    return files;
  } catch (cause) {
    throw writeFailed(repository, cause);
  } finally {
    removeIfAllowed(pending);
  }
}

function publishModel(place: string, pending: string, version: string, files: readonly ExportedFile[]): void {
  if (!existsSync(place)) {
    renameSync(pending, place);
    return;
  }
  renameSync(join(pending, version), join(place, version));
  for (const { path } of files) {
    const [, ...below] = path.split('/');
    if (below[0] === version) continue;
    makeFolder(dirname(join(place, ...below)));
    moveInto(join(pending, ...below), join(place, ...below));
  }
}

/** A version that may be loaded, and a model of somebody else's, are replaced by --force alone. */
function rejectReplacing({ name, version }: ServedModel, repository: string): void {
  const place = pathBelow(repository, name);
  if (existsSync(join(place, String(version))))
    throw refused(
      `${place} has a version ${version}.`,
      'Leave --version out, which writes the next one, or pass --force to replace it.',
    );
  const config = join(place, 'config.pbtxt');
  if (
    existsSync(config) &&
    !readText(config, LARGEST_DOCUMENT, 'TF_SERVING_CONFIG').includes('trtforge.identity.')
  )
    throw refused(
      `${config} was not written by trtforge.`,
      'Choose another --name, or pass --force to replace it.',
    );
}

const roles = { encoder: /encoder/i, predictor: /predict|decoder/i, joint: /joint/i } as const;
type Role = keyof typeof roles;

/** The engines of each component, by the names of their models. Throws TF_SERVING_REFUSED. */
function componentsOf(
  engines: readonly StoredEngine[],
): readonly (readonly [role: Role, engines: readonly StoredEngine[]])[] {
  const names = Object.keys(roles) as Role[];
  const components = names.map((role) => {
    const isOf = (engine: StoredEngine) =>
      names.find((each) => roles[each].test(engine.passport.model.name)) === role;
    return [role, engines.filter(isOf)] as const;
  });
  const missing = components.find(([, own]) => own.length === 0)?.[0];
  if (missing === undefined && components.flatMap(([, own]) => own).length === engines.length)
    return components;
  throw refused(
    missing === undefined
      ? 'One of the engines is of no component of the bundle.'
      : `The bundle has no engine of its ${missing}.`,
    `Name the engines of encoder, predictor and joint; their models are ${engines.map(({ passport }) => passport.model.name).join(', ')}.`,
  );
}

const CLIENT = new URL('../../../../examples/triton/main.ts', import.meta.url);

/** A program that decodes with the models, and what it reads: by name. Throws TF_SERVING_REFUSED where the meta file leaves open how. */
function clientFiles(
  start: string,
  models: readonly ServedModel[],
  meta: BundleMeta,
): readonly (readonly [string, string])[] {
  const [, , joint] = models;
  const logits = logitsOf(meta, joint?.outputs[0]?.shape?.at(-1));
  if (typeof logits === 'string')
    throw refused(
      `${meta.path} cannot be decoded with: ${logits}.`,
      'Correct blank_id, duration_values and joint_vocab_size in it.',
    );
  const decoding = { ...logits, labels: meta.labels, streaming: meta.streaming };
  const described = models.map(({ name, maxBatch, states, fed, inputs, outputs }) => ({
    ...{ model: name, isBatched: maxBatch > 0, isStateful: states.length > 0, inputs, outputs, fed },
  }));
  return [
    [`${start}.client.json`, `${JSON.stringify({ models: described, decoding }, null, 1)}\n`],
    [`${start}.client.mts`, readFileSync(CLIENT, 'utf8').replace('client.json', `${start}.client.json`)],
  ];
}
