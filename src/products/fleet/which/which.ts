import { existsSync } from 'node:fs';
import { closing, openFile } from '../../../base/files/byte-source.js';
import * as is from '../../../base/options/kinds.js';
import { allBut, needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { isCalled } from '../../../engines/identity/engine-name.js';
import { readModelContent } from '../../../engines/identity/model-content.js';
import type { Passport } from '../../../engines/identity/passport.js';
import { type NamedGpu, parseGpu } from '../../../engines/identity/target.js';
import { wrappedPlanIn } from '../../../engines/plan/context-model.js';
import { isEngineFile } from '../../../engines/plan/header.js';
import { inspectEngine } from '../../../engines/plan/inspect.js';
import { nothingCalled } from '../../../engines/store/lookup.js';
import { type EngineStores, openStores, storeOptions } from '../../../engines/store/open-stores.js';
import type { EngineSource, EngineSummary } from '../../../engines/store/store.js';
import { type Trust, verifyTrusted } from '../../../engines/store/trust.js';
import { TrtforgeError } from '../../../errors.js';
import { type Work, type WorkContext, workOf } from '../../../events.js';
import { doubtOf, machineOf, readInventory } from './machine.js';
import type { Which } from './result.js';
import { type Candidate, type Found, judgeEngines } from './rulings.js';

/** The machines that are asked about. */
export const machineOptions = {
  /** A file of machines: GPU, TensorRT, driver, container. */
  inventory: optional(is.text, {
    flags: '--on <inventory>',
    describe: 'machines: GPU, TensorRT, driver, container (YAML)',
  }),
  /** A machine with this container of Triton: `24.05-py3`. */
  triton: optional(is.text, {
    flags: '--triton <tag>',
    describe: 'a machine with this container of Triton: 24.05-py3',
  }),
  /** A machine with this DeepStream: `9.0`. */
  deepstream: optional(is.text, {
    flags: '--deepstream <version>',
    describe: 'a machine with this DeepStream: 9.0',
  }),
  /** The GPU of both; default: TensorRT alone is judged. */
  gpu: optional(is.either(is.text, is.object<NamedGpu>()), {
    flags: '--gpu <gpu>',
    describe: 'the GPU of --triton and --deepstream (default: TensorRT alone is judged)',
    parse: parseGpu,
  }),
};

export const whichOptions = {
  /** An ONNX model, an engine file (or an ONNX file around one), or part of a name in the store. */
  query: needed(is.text),
  ...machineOptions,
  ...allBut(storeOptions, 'maxBytes', 'signKey'),
};

export interface WhichOptions extends OptionsOf<typeof whichOptions> {}

/**
 * Which stored engines of a model, or which file, the machines load. Throws TF_USAGE without a machine, TF_INVENTORY_INVALID, TF_PLAN_INVALID, TF_REMOTE_*, and what reading a model throws.
 *
 * ```ts
 * const { machines } = await whichEngines({ query: 'det.onnx', inventory: 'inventory.yaml' });
 * use(machines.map(({ name, best }) => [name, best]));
 * ```
 */
export async function whichEngines(options: WhichOptions, context?: WorkContext): Promise<Which> {
  const work = workOf(context);
  const { query, inventory, triton, deepstream, gpu: named, ...stored } = options;
  const gpu = typeof named === 'string' ? parseGpu(named) : named;
  const machines = Object.entries({ tritonserver: triton, deepstream }).flatMap(([image, tag]) => {
    const container = `${image}:${tag}`;
    return tag === undefined ? [] : [machineOf(container, { gpu, container }, gpu === undefined)];
  });
  if (machines.length === 0 && (inventory === undefined || gpu !== undefined))
    throw new TrtforgeError('TF_USAGE', gpu ? '--gpu is that of a container.' : 'No machine is named.', {
      remedy: 'Add --on inventory.yaml, --triton 24.05-py3 or --deepstream 9.0.',
    });
  if (inventory !== undefined) machines.unshift(...readInventory(inventory));
  for (const { name, ...machine } of machines) {
    const { message, remedy } = doubtOf(machine) ?? {};
    if (message === undefined) continue;
    work.emit({
      type: 'log',
      source: 'trtforge',
      severity: 'warning',
      message: `${name}: ${message} ${remedy}`,
    });
  }
  const { close, ...stores } = await openStores(stored, work.environment);
  try {
    return judgeEngines(await findEngines(query, stores, work), machines);
  } finally {
    close();
  }
}

/** The engine of a file, also of an ONNX file around one, the stored engines of an ONNX model, or those that are called so. Throws TF_PLAN_INVALID, TF_REMOTE_*, TF_USAGE (nothing is called so), and what reading a model throws. */
export async function findEngines(query: string, stores: EngineStores, work: Work): Promise<Found> {
  const { signal } = work;
  const isFile = existsSync(query);
  if (isFile && (isEngineFile(query) || closing(openFile(query), wrappedPlanIn) !== null))
    return { query, model: null, engines: [await ofFile(query, stores.trust, work)] };
  const isModel = isFile || /\.onnx$/i.test(query);
  const content = isModel ? await readModelContent(query, work) : undefined;
  const model = content?.digest ?? null;
  const isMeant = (each: EngineSummary) =>
    model === null ? isCalled(query, each.identity, each.name ?? '') : each.model === model;
  const found = new Map<string, Candidate>();
  const places = [stores.store, ...stores.layers, stores.remote].filter((place) => place !== null);
  for (const place of places)
    for (const each of (await place.list(signal)).filter(isMeant).sort(newestFirst))
      if (found.get(each.identity)?.passport == null)
        found.set(each.identity, await ofStore(place, each, signal));
  if (model === null && found.size === 0)
    throw nothingCalled(places.map(({ place }) => place).join(', '), query);
  return { query, model, content, engines: [...found.values()] };
}

const newestFirst = (a: EngineSummary, b: EngineSummary): number =>
  (b.builtAt ?? '').localeCompare(a.builtAt ?? '');

async function ofFile(engine: string, trust: Trust, work: Work): Promise<Candidate> {
  try {
    // As before every load: another engine in its place is one that no machine loads.
    if (trust.required) await verifyTrusted(trust, engine);
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    const header = { found: false, code: error.code, reason: error.message } as const;
    return { engine, name: engine, identity: null, header, passport: null, warning: null };
  }
  const header = await inspectEngine(engine, [], work);
  const isItsOwn = header.findings.every(({ severity }) => severity !== 'error');
  const passport = (isItsOwn && header.passport?.content) || null;
  const warning = header.findings.map(({ message }) => message).join(' ') || null;
  const { name = engine, identity } = passport ?? {};
  return { engine, name, identity: identity?.digest ?? null, header, passport, warning };
}

/** Checked as before every load: digest, header, signature. Of a bucket, its entry alone: no plan is fetched. */
async function ofStore(
  store: EngineSource<{ readonly passport: Passport; readonly planPath?: string; readonly key?: string }> & {
    readonly prefix?: string;
  },
  { identity, name }: EngineSummary,
  signal: AbortSignal,
): Promise<Candidate> {
  const answer = await store.get(identity, signal);
  const { passport = null, planPath, key } = answer.found ? answer.engine : {};
  const engine = planPath ?? `${store.place}/${key?.slice(store.prefix?.length) ?? identity}`;
  const header = answer.found ? answer.engine.passport.identity.document.target : answer;
  return { engine, name: name ?? identity, identity, header, passport, warning: null };
}
