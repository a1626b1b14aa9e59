import { canonicalJson } from '../../../engines/identity/canonical-json.js';
import type { Passport } from '../../../engines/identity/passport-file.js';
import { describeComputeCapability, gpuArchitectures } from '../../../engines/identity/target.js';
import type { Profile } from '../../../engines/profiles/profile.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import { TrtforgeError } from '../../../errors.js';
import type { KnownAnswer } from '../../../quality/known-answer/answer.js';
import { dataTypes } from '../model-config.js';
import { type BatchFacts, batchOf } from './batch.js';
import type { StateContract } from './contract.js';

export type EngineTensor = Passport['plan']['inputs'][number];

/** An input that Triton keeps between the requests of a sequence, and the output that becomes its next content. */
export interface ServedState {
  readonly input: EngineTensor;
  readonly output: EngineTensor;
  /** Every element before the first request. */
  readonly initial: number;
}

/** What is decided of a model before any file of it is made. */
export interface ServedModel extends BatchFacts {
  readonly name: string;
  readonly version: number;
  /** Whether the version was asked for, and is the one served. */
  readonly isPinned: boolean;
  /** By capability, `8.9`; one engine may serve several. */
  readonly plans: readonly { readonly capability: string; readonly engine: StoredEngine }[];
  /** Without states. */
  readonly inputs: readonly EngineTensor[];
  readonly outputs: readonly EngineTensor[];
  readonly states: readonly ServedState[];
  /** Of every engine, those that all of them have; empty for fixed shapes. */
  readonly profiles: readonly (readonly Profile[])[];
  readonly answer: KnownAnswer | undefined;
  readonly instances: number;
  /** null: requests do not wait for others. */
  readonly delayMicroseconds: number | null;
  readonly labels: readonly string[];
  readonly warnings: readonly string[];
}

export interface ServeRequest {
  readonly name: string;
  readonly version: number | null;
  readonly instances: number;
  readonly delayMicroseconds: number | null;
  readonly labels: readonly string[];
  /** Part of a GPU's name: which of several engines of one capability. */
  readonly gpu: string | undefined;
  readonly contract: StateContract | undefined;
  /** Engines that Triton cannot run are warnings, not errors. */
  readonly force: boolean;
}

export const refused = (message: string, remedy?: string): TrtforgeError =>
  new TrtforgeError('TF_SERVING_REFUSED', message, remedy === undefined ? {} : { remedy });

/** Decides how the engines of one model are served, each on its GPUs. Throws TF_SERVING_REFUSED. */
export function serve(engines: readonly StoredEngine[], request: ServeRequest): ServedModel {
  const { name, contract, force } = request;
  const warnings: string[] = [];
  for (const engine of engines) warnings.push(...unservable(name, engine, force));
  const plans = byCapability(engines, request.gpu);
  const { plan, identity, knownAnswer: answer } = plans[0]!.engine.passport;
  for (const { engine } of plans) rejectOtherSignature(plans[0]!.engine, engine);
  const tensors = [...plan.inputs, ...plan.outputs];
  for (const tensor of tensors) rejectTensor(plans[0]!.engine, tensor);
  const states = statesOf(plan, contract, answer);
  const count = Math.min(...plans.map(({ engine }) => recipeOf(engine).profiles.length));
  if (plans.some(({ engine }) => recipeOf(engine).profiles.length > count))
    warnings.push(`${name}: the engines have different numbers of profiles; the first ${count} are served.`);
  const profiles = plans.map(({ engine }) => recipeOf(engine).profiles.slice(0, count));
  const batch = batchOf(plan, { states, profiles, contract });
  if (batch.why !== null)
    warnings.push(
      `${name}: max_batch_size is 0, since ${batch.why}. Triton runs every request alone: more of them at a time need --instances.`,
    );
  if (identity.document.recipe.pluginDigests.length > 0)
    warnings.push(
      `${name}: start the server with the engine's plug-ins: --backend-config=tensorrt,plugins=FILE.so`,
    );
  const names = new Set(states.flatMap(({ input, output }) => [input.name, output.name]));
  return {
    ...request,
    ...batch,
    version: request.version ?? 1,
    isPinned: request.version !== null,
    plans,
    inputs: plan.inputs.filter((input) => !names.has(input.name)),
    outputs: plan.outputs.filter((output) => !names.has(output.name)),
    states,
    profiles,
    answer,
    warnings,
  };
}

const recipeOf = ({ passport }: StoredEngine) => passport.identity.document.recipe;

/** What Triton's TensorRT back end cannot load at all, or only as it is started. */
function unservable(name: string, engine: StoredEngine, force: boolean): readonly string[] {
  const { target, recipe } = engine.passport.identity.document;
  if (target.product === 'tensorrt-rtx' && !force)
    throw refused(
      `${engine.passport.name} is an engine of TensorRT-RTX, which Triton's TensorRT back end cannot run.`,
      'Build it with --target tensorrt on a machine with the GPU, or pass --force to write the files for a trial.',
    );
  return [
    ...(target.product === 'tensorrt-rtx'
      ? [`${name}: Triton cannot run the plan of ${engine.passport.name}, an engine of TensorRT-RTX.`]
      : []),
    ...(recipe.flags.includes('version-compatible')
      ? [`${name}: start the server with --backend-config=tensorrt,version-compatible=true`]
      : []),
  ];
}

/** One engine for each capability. An engine for Ampere and newer serves those that no other is for. */
function byCapability(engines: readonly StoredEngine[], gpu: string | undefined): ServedModel['plans'] {
  const found = new Map<number, StoredEngine[]>();
  const add = (capability: number, engine: StoredEngine) => {
    const own = found.get(capability) ?? [];
    if (!own.some(({ identity }) => identity === engine.identity)) found.set(capability, [...own, engine]);
  };
  for (const engine of engines)
    for (const capability of engine.passport.identity.document.target.computeCapabilities)
      add(capability, engine);
  const own = new Set(found.keys());
  for (const engine of engines.filter((each) => recipeOf(each).hardwareCompatibility === 'ampere-plus'))
    for (const { computeCapability } of gpuArchitectures)
      if (computeCapability >= 80 && !own.has(computeCapability)) add(computeCapability, engine);
  if (gpu !== undefined && !engines.some((engine) => isOn(gpu, engine)))
    throw refused(
      `None of the engines was built on a GPU "${gpu}".`,
      `They were built on ${gpusOf(engines)}.`,
    );
  return [...found]
    .sort(([a], [b]) => a - b)
    .map(([capability, several]) => ({
      capability: `${Math.floor(capability / 10)}.${capability % 10}`,
      engine: theOne(several, capability, gpu),
    }));
}

/** Products of one capability share a file name in Triton's configuration, and may have an engine each. */
function theOne(several: readonly StoredEngine[], capability: number, gpu: string | undefined): StoredEngine {
  const fitting = several.length > 1 && gpu !== undefined ? several.filter((one) => isOn(gpu, one)) : several;
  if (fitting.length === 1) return fitting[0]!;
  const listed = several.map(
    ({ identity, passport }) =>
      `${passport.name} (${passport.built.gpu ?? 'built without a GPU'}, ${identity.slice(0, 12)})`,
  );
  throw refused(
    `${several.length} engines are for ${describeComputeCapability(capability)}: ${listed.join('; ')}.`,
    'Choose by the GPU they were built on, --gpu "NVIDIA L4", or name one of them by its identity.',
  );
}

const isOn = (gpu: string, { passport }: StoredEngine): boolean =>
  passport.built.gpu?.toLowerCase().includes(gpu.toLowerCase()) ?? false;
const gpusOf = (engines: readonly StoredEngine[]): string =>
  [...new Set(engines.map(({ passport }) => passport.built.gpu ?? 'no GPU'))].join(', ');

function rejectOtherSignature(first: StoredEngine, other: StoredEngine): void {
  const [expected, actual] = [first, other].map(({ passport: { plan } }) => [
    ...plan.inputs,
    ...plan.outputs,
  ]);
  const differing = expected!.findIndex((tensor, at) => canonicalJson(tensor) !== canonicalJson(actual![at]));
  if (differing < 0 && expected!.length === actual!.length) return;
  const tensor = (expected![differing] ?? actual![expected!.length])?.name;
  throw refused(
    `${first.passport.name} and ${other.passport.name} differ in "${tensor}": engines of one export need the same inputs and outputs.`,
    'Export them as two models, each with its --name.',
  );
}

/** A path in a tensor's name would lead out of the model's folder; Triton writes names into its log. */
const HOSTILE = /\p{Cc}|(?:^|[/\\])\.\.(?:[/\\]|$)/u;

function rejectTensor({ passport }: StoredEngine, { name, dtype, shape }: EngineTensor): void {
  const { name: engine } = passport;
  if (HOSTILE.test(name) || name === '')
    throw refused(`${engine} has a tensor ${JSON.stringify(name)}, which no file may be named after.`);
  if (dataTypes[dtype] === undefined)
    throw refused(
      `"${name}" of ${engine} is ${dtype}, which Triton does not carry.`,
      'Build the engine with inputs and outputs in FP32, FP16, BF16, INT8, INT32 or INT64: trtforge convert keeps them by default.',
    );
  if (shape === null)
    throw refused(
      `The passport of ${engine} does not state the rank of "${name}".`,
      'Build the engine again with trtforge, which records it.',
    );
  if (shape.includes(0)) throw refused(`"${name}" of ${engine} is empty, which Triton does not accept.`);
}

/** By the contract, else by what the known answer feeds back. */
function statesOf(
  { inputs, outputs }: Passport['plan'],
  contract: StateContract | undefined,
  answer: KnownAnswer | undefined,
): readonly ServedState[] {
  const pairs =
    contract?.state ??
    Object.entries(answer?.state ?? {}).map(([input, output]) => ({ input, output, initial: 0 }));
  return pairs.map(({ input: from, output: to, initial }) => {
    const input = inputs.find(({ name }) => name === from);
    const output = outputs.find(({ name }) => name === to);
    if (input === undefined || output === undefined)
      throw refused(
        `The state ${from} → ${to} is not an input and an output of the engine.`,
        'Pass the contract of this model.',
      );
    const isSame =
      input.dtype === output.dtype &&
      input.shape!.length === output.shape!.length &&
      input.shape!.every((size, at) => size === null || (output.shape![at] ?? size) === size);
    if (!isSame)
      throw refused(
        `State ${from} and ${to} differ in type or shape, and Triton feeds an output back as it is.`,
        'Export the model so that its states come back with the shape they go in.',
      );
    return { input, output, initial };
  });
}
