import { canonicalJson } from '../../../base/files/digest.js';
import { gpuArchitectures, isAmperePlus } from '../../../behaviour/facts.js';
import type { Passport } from '../../../engines/identity/passport.js';
import { axesOf, otherThanBatch, type Profile } from '../../../engines/profiles/profile.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import { TrtforgeError } from '../../../errors.js';
import type { Contract } from '../../../formats/contract/contract.js';
import { canFeed, pairStates } from '../../../formats/contract/state.js';
import { elementCount } from '../../../formats/tensor/dtype.js';
import {
  batchesOf,
  type EngineTensor,
  isShapeTensor,
  knownStates,
  leastBatch,
  profilesOf,
} from '../engine.js';
import { type ConfigTensor, configTensor, dataTypes, fedByOrder } from '../model-config.js';
import type { TritonExportRequest } from './options.js';

/** One model of an export: what the options name is read. */
export interface Serving
  extends Omit<TritonExportRequest, 'engines' | 'output' | 'name' | 'version' | 'labels' | 'contract'> {
  readonly name: string;
  readonly version: number;
  /** Whether the version was asked for, and is the one served. */
  readonly isPinned: boolean;
  /** Names of classes. */
  readonly labels: readonly string[];
  readonly contract: Pick<Contract, 'inputs' | 'state'> | undefined;
}

interface State {
  readonly input: EngineTensor;
  readonly output: EngineTensor;
  readonly initial: number;
}

/** The decisions about a model before any file of it is made. */
export interface ServedModel extends Serving {
  /** By capability, `8.9`; one engine may serve several. */
  readonly plans: readonly { readonly capability: string; readonly engine: StoredEngine }[];
  /** Without states. */
  readonly inputs: readonly EngineTensor[];
  readonly outputs: readonly EngineTensor[];
  /** The states that Triton keeps between the requests of a sequence: `initial` is every element before the first. */
  readonly states: readonly State[];
  /** The states that it cannot keep: the client sends them with each request. */
  readonly fed: readonly State[];
  /** Of each plan, at least one; without ranges for fixed shapes. */
  readonly profiles: readonly (readonly Profile[])[];
  /** 0: never; shapes are complete then, else they lack their first axis. */
  readonly maxBatch: number;
  readonly warnings: readonly string[];
}

export const refused = (message: string, remedy?: string): TrtforgeError =>
  new TrtforgeError('TF_SERVING_REFUSED', message, { remedy });

/** Decides how the engines of one model are served, each on its GPUs. Throws TF_SERVING_REFUSED. */
export function serve(engines: readonly StoredEngine[], request: Serving): ServedModel {
  const warnings: string[] = [];
  const warn = (...texts: readonly string[]) =>
    warnings.push(...texts.map((text) => `${request.name}: ${text}`));
  const unless = (message: string, remedy: string) => {
    if (!request.force) throw refused(message, remedy);
    warn(message);
  };
  for (const { passport } of engines)
    if (passport.identity.document.target.product === 'tensorrt-rtx')
      unless(
        `${passport.name} is an engine of TensorRT-RTX, which Triton's TensorRT back end cannot run.`,
        'Build it with --target tensorrt on a machine with the GPU, or pass --force to write the files for a trial.',
      );
  const plans = byCapability(engines, request.gpu);
  assertServable(plans.map(({ engine }) => engine));
  const [{ engine: first }] = plans as [ServedModel['plans'][number]];
  const { inputs, outputs } = first.passport.plan;
  const profiles = plans.map(({ engine }) => profilesOf(engine.passport));
  const all = statesOf(first, request.contract);
  if (request.contract === undefined && all.length === 0) warn(...unstatedTexts(first));
  const wide = all.filter(({ input }) => input.shape!.length > 1);
  const batch = batchOf(first.passport, { states: wide, profiles, contract: request.contract });
  // Beside a batch a [B] state has no dimensions, and core allocates nothing for it (`GetElementCount`).
  const isBatched = typeof batch === 'number' && batch > 0;
  const states = isBatched || swappedStates(all) !== undefined ? wide : all;
  const fed = all.filter((state) => !states.includes(state));
  warn(...fed.map(fedText));
  const swapped = swappedStates(states);
  if (swapped !== undefined)
    unless(
      `Triton pairs the states by the order of their names, and would feed ${swapped.fed} into ${swapped.input}.`,
      'Name the outputs so that they sort as the inputs do: h_next and c_next for h and c.',
    );
  const ends = outputs.map((output) => configTensor(output, isBatched));
  warn(...batchTexts(batch, profiles, inputs), ...labelTexts(request.labels, ends), ...startTexts(first));
  const kept = new Set(states.flatMap(({ input, output }) => [input.name, output.name]));
  return {
    ...request,
    plans,
    inputs: inputs.filter(({ name }) => !kept.has(name)),
    outputs: outputs.filter(({ name }) => !kept.has(name)),
    states,
    fed,
    profiles,
    maxBatch: typeof batch === 'string' ? 0 : batch,
    warnings,
  };
}

/** Throws TF_SERVING_REFUSED for engines that are not one model, and for tensors that Triton does not take. */
function assertServable(engines: readonly StoredEngine[]): void {
  const [first] = engines as [StoredEngine];
  for (const engine of engines) rejectOtherSignature(first, engine);
  const { inputs, outputs } = first.passport.plan;
  for (const tensor of [...inputs, ...outputs]) rejectTensor(first, tensor);
  if (new Set(engines.map(({ passport }) => profilesOf(passport).length)).size > 1)
    throw refused('The engines have different numbers of profiles.', 'Export them as two models.');
}

/** Warnings about outputs that read like states and are served as none. */
const unstatedTexts = ({ passport: { plan }, planPath }: StoredEngine): readonly string[] =>
  pairStates(plan.inputs, plan.outputs).map(
    ({ input, output }) =>
      `${output} reads like the next ${input}, and is no state here: each request begins anew. Pass a contract: trtforge stream draft ${planPath} -o contract.json`,
  );

const fedText = ({ input, output, initial }: State): string =>
  `Triton cannot keep the state ${input.name}: send it with each request, at first ${initial}, then ${output.name} of the answer before.`;

/** Warnings about the batch. Throws TF_SERVING_REFUSED where none fits every engine. */
function batchTexts(
  batch: number | string,
  profiles: ServedModel['profiles'],
  inputs: readonly EngineTensor[],
): readonly string[] {
  if (typeof batch === 'string')
    return [
      `max_batch_size is 0: ${batch}. Triton runs every request alone; --instances runs several at a time.`,
    ];
  if (batch <= 0) return [];
  const batches = profiles.map((own) => own.map((profile) => batchesOf(profile, inputs)));
  const least = leastBatch(batches, batch);
  if (least === undefined)
    throw refused(
      'No batch fits the engines of all GPUs.',
      'Build them with the same profiles, or export them as two models.',
    );
  return least > 1 ? [`a request of a batch below ${least} fails: no profile takes it on every GPU.`] : [];
}

/** Warnings about labels that fit no output. Throws TF_SERVING_REFUSED for a label of several lines. */
function labelTexts(labels: readonly string[], outputs: readonly ConfigTensor[]): readonly string[] {
  const broken = labels.find((label) => /[\n\r]/.test(label));
  if (broken !== undefined)
    throw refused(`The label ${JSON.stringify(broken)} has a line break, and Triton reads one a line.`);
  if (labels.length === 0 || outputs.some((output) => hasLabels(output, labels))) return [];
  return [`no output has as many elements as there are labels, ${labels.length}: they are left out.`];
}

/** Warnings about what the server has to be started with. */
function startTexts(engine: StoredEngine): readonly string[] {
  const { pluginDigests, flags } = recipeOf(engine);
  return [
    ...(pluginDigests.length > 0
      ? ['start the server with the plug-ins: --backend-config=tensorrt,plugins=FILE.so']
      : []),
    ...(flags.includes('version-compatible')
      ? ['start the server with --backend-config=tensorrt,version-compatible=true']
      : []),
  ];
}

/** Triton counts classes along the whole output of a request. */
export const hasLabels = ({ dims = [] }: ConfigTensor, { length }: readonly string[]): boolean =>
  length > 0 && elementCount(dims) === length;

const recipeOf = ({ passport }: StoredEngine) => passport.identity.document.recipe;

/** One engine for each capability. An engine for Ampere and newer serves those that no other is for. */
function byCapability(engines: readonly StoredEngine[], gpu: string | undefined): ServedModel['plans'] {
  const builtFor = ({ passport }: StoredEngine) => passport.identity.document.target.computeCapabilities;
  const wide = engines.filter((engine) => recipeOf(engine).hardwareCompatibility === 'ampere-plus');
  const newer = gpuArchitectures.map(({ computeCapability }) => computeCapability).filter(isAmperePlus);
  const served = new Set([...engines.flatMap(builtFor), ...(wide.length > 0 ? newer : [])]);
  return [...served]
    .sort((a, b) => a - b)
    .map((number) => {
      const capability = `${Math.floor(number / 10)}.${number % 10}`;
      const own = engines.filter((engine) => builtFor(engine).includes(number));
      return { capability, engine: theOne(capability, own.length > 0 ? own : wide, gpu) };
    });
}

/** GPUs of one capability share a file in Triton's configuration, and may have an engine each. */
function theOne(capability: string, own: readonly StoredEngine[], gpu: string | undefined): StoredEngine {
  const wanted = gpu?.toLowerCase() ?? '';
  const nameOf = ({ passport }: StoredEngine) => passport.built.gpu?.toLowerCase() ?? '';
  const named = own.filter((engine) => nameOf(engine).includes(wanted));
  // "NVIDIA L4" is a part of "NVIDIA L40S".
  const exact = named.filter((engine) => wanted !== '' && nameOf(engine) === wanted);
  const fitting = exact.length > 0 ? exact : named;
  if (fitting.length === 1) return fitting[0]!;
  const listed = own.map(
    ({ passport: { name, built } }) => `${name} (${built.gpu ?? 'built without a GPU'})`,
  );
  throw refused(
    `${fitting.length} of the engines for capability ${capability} fit: ${listed.join('; ')}.`,
    'Choose by the GPU that they were built on, --gpu "NVIDIA L4", or name one of them alone.',
  );
}

function rejectOtherSignature({ passport }: StoredEngine, { passport: other }: StoredEngine): void {
  const [own, others] = [passport, other].map(({ plan }) => [...plan.inputs, ...plan.outputs]);
  // An older passport has no symbols.
  const textOf = (tensor: EngineTensor | undefined) =>
    tensor === undefined ? '' : canonicalJson({ ...tensor, symbols: [] });
  const isSame = (at: number) => textOf(own![at]) === textOf(others![at]);
  const at = [...own!, ...others!].findIndex((_, index) => !isSame(index));
  if (at >= 0)
    throw refused(
      `${passport.name} and ${other.name} differ in "${(own![at] ?? others![at])?.name}": engines of one model have the same inputs and outputs.`,
      'Export them as two models, each with its --name.',
    );
}

/** Files are named after tensors, and Triton writes their names into its log. */
const HOSTILE = /^$|\p{Cc}|(?:^|[/\\])\.\.(?:[/\\]|$)/u;

function rejectTensor(
  { passport: { name: engine } }: StoredEngine,
  { name, dtype, shape }: EngineTensor,
): void {
  if (HOSTILE.test(name))
    throw refused(`${engine} has a tensor ${JSON.stringify(name)}, which no file may be named after.`);
  if (dataTypes[dtype] === undefined)
    throw refused(
      `"${name}" of ${engine} is ${dtype}, which Triton does not carry.`,
      `Build the engine with inputs and outputs of ${Object.keys(dataTypes).join(', ')}.`,
    );
  const lacks = (what: string) =>
    refused(
      `"${name}" of ${engine} has no ${what}.`,
      'Build the engine again with trtforge, from a model that declares a shape of one axis or more.',
    );
  if (shape === null) throw lacks('rank in the passport');
  if (shape.length === 0) throw lacks('axis');
  if (shape.includes(0)) throw lacks('elements');
}

/** By the contract, else by what the known answer feeds back. */
function statesOf({ passport }: StoredEngine, contract: Serving['contract']): readonly State[] {
  const { plan } = passport;
  return (contract?.state ?? knownStates(passport)).map(({ input: from, output: to, initial }) => {
    const input = plan.inputs.find(({ name }) => name === from);
    const output = plan.outputs.find(({ name }) => name === to);
    if (input !== undefined && output !== undefined && canFeed(output, input))
      return { input, output, initial };
    throw refused(
      `State ${from} cannot be fed by ${to}: the engine lacks one of them, or they differ in type or shape.`,
      'Pass the contract of this model; its states must come back with the shape they go in.',
    );
  });
}

/** A state that core would feed from the output of another one. */
function swappedStates(
  states: readonly State[],
): { readonly fed: string; readonly input: string } | undefined {
  const pairs = states.map(({ input, output }) => ({ input: input.name, output: output.name }));
  const fed = fedByOrder(pairs);
  const swapped = pairs.find(({ input, output }) => fed.get(input) !== output);
  return swapped && { input: swapped.input, fed: fed.get(swapped.input)! };
}

/** The largest batch that every engine takes, where the first axis of every tensor is the batch; else why Triton cannot batch, or 0 for fixed shapes. */
function batchOf(
  passport: Passport,
  { states, profiles, contract }: Pick<ServedModel, 'states' | 'profiles' | 'contract'>,
): number | string {
  const { inputs, outputs } = passport.plan;
  if (!inputs.some(({ shape }) => shape!.includes(null))) return 0;
  const valued = inputs.find(({ name }) => isShapeTensor(profiles[0]!, name));
  if (valued !== undefined) return `${valued.name} is a shape tensor`;
  const fixed = [...inputs, ...outputs].find(({ shape }) => shape![0] !== null);
  if (fixed !== undefined) {
    const shape = `[${fixed.shape!.map((size) => size ?? 'open').join(', ')}]`;
    return states.some(({ input, output }) => fixed === input || fixed === output)
      ? `the batch is not the first axis of state ${fixed.name}, ${shape}; sequences are batched with states [B, …]`
      : `the first axis of ${fixed.name}, ${shape}, is not an open batch`;
  }
  const other = otherThanBatch(axesOf(passport, contract?.inputs));
  if (other !== undefined) return other.why;
  const largest = (own: readonly Profile[]) =>
    Math.max(...own.map((profile) => batchesOf(profile, inputs).max));
  const batch = Math.min(...profiles.map(largest));
  return Number.isFinite(batch) ? batch : 0;
}
