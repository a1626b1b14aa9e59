import { statSync } from 'node:fs';
import { join } from 'node:path';
import { closing } from '../../base/files/byte-source.js';
import { openSession } from '../../engines/runtime/open-session.js';
import { type ErrorCode, TrtforgeError } from '../../errors.js';
import { editModel, type OnnxModel, viewModel } from '../../formats/onnx/model.js';
import { type OpenDimension, openDimensions } from '../../formats/onnx/open-dimensions.js';
import { addOutputs, borderValues } from '../../formats/onnx/subgraph.js';
import { dimensionsOf, dimensionValue, interfaceOf } from '../../formats/onnx/values.js';
import { writeModel } from '../../formats/onnx/write.js';
import { usesOf } from '../../formats/precision/normalise.js';
import { float32Values, type NamedTensors, type Tensor, tensorFrom } from '../../formats/tensor/tensor.js';
import type { VerifyRequest } from '../../quality/verify/options.js';
import { reachingOutputs } from '../../quality/verify/reached-by.js';
import { type ReferenceRun, SampleRuns, type SideRun } from '../../quality/verify/sample-runs.js';
import { unrepeatable } from '../../quality/verify/stability.js';
import { regrouped } from './batch-proof.js';
import type { EditContext, Editing, Link } from './edited-model.js';
import { comparing, inType, judgeOutputs, type LinkedOutput, reasonsOf } from './proof-criterion.js';
import type { EditProof } from './result.js';

/** What both models run on. */
interface ProofRequest
  extends Pick<VerifyRequest, 'seed' | 'samples' | 'shapes' | 'ranges' | 'data' | 'threads'> {}

/** The files of a proof. */
interface Proven {
  readonly original: string;
  readonly edited: string;
  readonly editing: Pick<Editing, 'model' | 'inputs' | 'outputs' | 'sizes' | 'opened' | 'isRounded'>;
  /** A folder for files that are not kept. */
  readonly work: string;
}

/** What means that this machine cannot run a model, and no fault of it. */
const cannotRun: readonly ErrorCode[] = [
  'TF_ONNXRUNTIME_FAILED',
  'TF_ONNXRUNTIME_MISSING',
  'TF_CHILD_DIED',
  'TF_SESSION_BINDING',
];

/**
 * Runs the original and the edited model node by node on the same inputs, and compares every output that the original has: bit by bit, and where they differ and
 * the steps allow it by the rules of `verify` for FP32. Values inside the original, at a cut, are its outputs for that. Throws what reading samples and opening throw, TF_CANCELLED.
 */
export async function prove(proven: Proven, request: ProofRequest, context: EditContext): Promise<EditProof> {
  const { edited, editing } = proven;
  const linked = linkedOutputs(editing);
  const none = noProof(editing, linked);
  const inconclusive = (reason: string): EditProof => ({
    ...none,
    outcome: 'inconclusive',
    reasons: [reason],
  });
  const lost = [...editing.inputs].find(([, { source }]) => source === null);
  if (lost !== undefined) return inconclusive(`Input ${lost[0]} is no value of the original.`);
  if (linked.length === 0) return inconclusive('No output has an original.');
  const asked = { ...request, ...(await referenceOf(proven, request, context.signal)), candidate: edited };
  let original: OriginalRun;
  try {
    original = await ran(asked, editing.inputs, context);
  } catch (error) {
    if (!isUnable(error)) throw error;
    return inconclusive(`The original does not run here: ${error.message}`);
  }
  const { runs, reference } = original;
  const named = new Map(linked.map(({ name, was }) => [name, was]));
  const run = (expected: ReferenceRun) =>
    candidateRun(edited, expected, editing.inputs, named, request.threads, context);
  let candidate: SideRun;
  try {
    candidate = await run(reference);
  } catch (error) {
    if (!isUnable(error, 'TF_SESSION_INPUT')) throw error;
    return { ...none, ...notRunning(error, editing) };
  }
  const casts = new Map(linked.map(({ was, cast }) => [was, cast]));
  const known = { reaching: reachingOutputs(asked.reference), plant: false };
  const compare = comparing({ asked, runs, reference, casts, known });
  const compared = await compare(reference, candidate);
  const doubts = await unrepeatable(asked, 'fp32', compared.judgement, runs, { reference, candidate });
  const proof: EditProof = {
    ...none,
    ...judgeOutputs(linked, compared, doubts, none.promised),
    samples: reference.outputs.length,
    shapes: shapesOf(reference),
    backend: candidate.backend,
  };
  if (editing.opened.length === 0 || proof.outcome !== 'pass') return proof;
  return proveOpened(proof, reference, { editing, runs, compare, reaching: known.reaching, run });
}

/** Outputs of the edited model that are values of the original. */
const linkedOutputs = ({ outputs }: Proven['editing']): readonly LinkedOutput[] =>
  [...outputs].flatMap(([name, { source, cast }]) => (source === null ? [] : [{ name, was: source, cast }]));

/** A proof before anything has run. */
function noProof({ outputs, isRounded }: Proven['editing'], linked: readonly LinkedOutput[]) {
  const promised: EditProof['promised'] = isRounded ? 'rounding' : 'bits';
  const unproven = [...outputs.keys()].filter((output) => !linked.some(({ name }) => name === output));
  return {
    promised,
    found: null,
    samples: 0,
    shapes: [],
    backend: null,
    outputs: [],
    opened: [],
    unproven,
  };
}

/** The verdict on an edited model that does not run on what the original ran on. */
function notRunning(
  { code, message }: TrtforgeError,
  { sizes }: Proven['editing'],
): Pick<EditProof, 'outcome' | 'reasons'> {
  const reasons = [`The edited model does not run, as the original does: ${message}`];
  if (code === 'TF_SESSION_INPUT' && sizes.some(({ input }) => input !== null))
    reasons.push(
      "Pass what leads to the sizes that were set, of the original's inputs: --shapes, or --inputs.",
    );
  return { outcome: code === 'TF_ONNXRUNTIME_FAILED' ? 'fail' : 'inconclusive', reasons };
}

/** What the proof of opened axes needs beside the proof at their stored sizes. */
interface OpenedProof {
  readonly editing: Proven['editing'];
  readonly runs: SampleRuns;
  readonly compare: ReturnType<typeof comparing>;
  readonly reaching: ReturnType<typeof reachingOutputs>;
  /** Runs the edited model on the samples of a run of the original. */
  readonly run: (reference: ReferenceRun) => Promise<SideRun>;
}

/** Of axes that were opened, which the original takes in one size alone: the edited model on samples that are put together computes what the original does of each. */
async function proveOpened(
  proof: EditProof,
  reference: ReferenceRun,
  { editing, runs, compare, reaching, run }: OpenedProof,
): Promise<EditProof> {
  const { reference: others, unknown, alike, mixing } = await regrouped(editing, reference, runs);
  const opened: EditProof['opened'] = editing.opened.map(({ input, axis, stored }) => ({
    ...{ input, axis, stored },
    sizes: [...new Set(others.outputs.map((_, at) => others.plan.tensors(at).get(input)?.shape[axis] ?? 0))],
  }));
  const alone = `${opened.map(({ input, axis, stored }) => `${input}:${axis} = ${stored}`).join(', ')} alone`;
  const judgedAs = (outcome: 'fail' | 'inconclusive', reasons: readonly string[]): EditProof => ({
    ...proof,
    ...{ outcome, reasons: [`The original runs with ${alone}.`, ...reasons] },
  });
  if (others.outputs.length === 0 || unknown.length > 0)
    return judgedAs('inconclusive', [
      unknown.length > 0
        ? `No one axis of ${unknown.join(', ')} is known to follow the samples.`
        : 'No two samples have the same shapes, so that none can be put together: pass more (--inputs), or draw more (--samples).',
    ]);
  let joined: SideRun;
  try {
    joined = await run(others);
  } catch (error) {
    if (!isUnable(error)) throw error;
    return judgedAs('fail', [`The edited model does not run with other sizes: ${error.message}`]);
  }
  const more = await compare(others, joined);
  const isWrong = ({ isRounded }: { readonly isRounded: boolean }) => !isRounded;
  if (![...more.differing.values()].some(isWrong)) {
    const isReached = (name: string) =>
      reaching(name).inputs.some((input) => opened.some((one) => one.input === input));
    const unshown = alike.filter(isReached);
    const reasons = [
      ...mixing.map((node) => `${node} makes one value of all samples, and these samples do not show it.`),
      ...unshown.map(
        (name) => `${name} is the same for all samples, and shows nothing: pass others (--inputs).`,
      ),
    ];
    return reasons.length === 0 ? { ...proof, opened } : judgedAs('inconclusive', reasons);
  }
  const isFine = (name: string) => more.differing.get(name)?.isRounded === true;
  return judgedAs('fail', [
    'With others, the edited model computes something else of the same samples.',
    ...reasonsOf(more.judgement, isFine),
  ]);
}

/**
 * What states the values that the edited model is compared with: the original itself, or a copy with the values at its cuts as outputs, and with the sizes
 * that were fixed where shapes alone cannot fix them.
 */
async function referenceOf(
  { original, editing, work }: Proven,
  request: ProofRequest,
  signal: AbortSignal | undefined,
): Promise<Pick<VerifyRequest, 'reference' | 'shapes'>> {
  const { inputs, outputs } = viewModel(original, ({ proto }) => interfaceOf(proto));
  const own = new Set([...inputs, ...outputs].map(({ name }) => name));
  const links = [...editing.inputs.values(), ...editing.outputs.values()];
  const inside = [
    ...new Set(links.flatMap(({ source }) => (source === null || own.has(source) ? [] : source))),
  ];
  const sized = inputs.flatMap(({ name, shape }) => {
    const sizeOf = (dim: number | string | null, axis: number) =>
      editing.sizes.find((each) => (each.input === name && each.axis === axis) || each.symbol === (dim ?? ''))
        ?.size;
    const fixed =
      shape?.map((dim, axis) => (typeof dim === 'number' ? dim : (sizeOf(dim, axis) ?? dim))) ?? [];
    return fixed.join() === shape?.join() ? [] : [[name, fixed] as const];
  });
  const isWhole = (shape: readonly unknown[]): shape is readonly number[] =>
    shape.every((size) => typeof size === 'number');
  const shapes = sized.flatMap(([name, shape]) => (isWhole(shape) ? [[name, shape] as const] : []));
  const stated = new Map([...(request.shapes ?? []), ...shapes]);
  if (inside.length === 0 && shapes.length === sized.length) return { reference: original, shapes: stated };
  const copy = join(work, 'original.onnx');
  await editModel(original, async (model) => {
    const valueAt = borderValues(model);
    addOutputs(
      model.proto,
      inside.flatMap((name) => valueAt(name) ?? []),
    );
    const open = new Map(sized);
    for (const value of model.proto.graph!.input) {
      const shape = open.get(value.name);
      for (const [axis, dim] of dimensionsOf(value).entries()) {
        const size = shape?.[axis];
        if (typeof size === 'number') dim.value = dimensionValue(size);
      }
    }
    if (open.size > 0) model.proto.graph!.valueInfo = [];
    await writeModel(model, copy, { signal });
  });
  return { reference: copy, shapes: stated };
}

type Links = ReadonlyMap<string, Link>;
const quietly = () => {};

/** The original after its run, and what runs it again. */
interface OriginalRun {
  readonly runs: SampleRuns;
  readonly reference: ReferenceRun;
}

/** Runs the original: at the sizes that are requested or guessed, then at others of its open dimensions too; and on values that the types of the edited model have. */
async function ran(request: VerifyRequest, inputs: Links, context: EditContext): Promise<OriginalRun> {
  const casts = [...inputs.values()].flatMap(({ source, cast }) =>
    cast === undefined ? [] : [[source!, cast] as const],
  );
  const open = request.data === undefined ? openSizes(request) : [];
  // One sample shows at which sizes the model runs.
  const first = { from: 0, to: 1 };
  let runs = new SampleRuns(request, context);
  let reference = await runs.reference(quietly, open.length + casts.length > 0 ? first : undefined);
  if (open.length > 0) {
    runs = new SampleRuns({ ...request, profiles: [otherSizes(open, request, reference)] }, context);
    reference = await runs.reference(quietly, casts.length > 0 ? first : undefined);
  }
  if (casts.length === 0) return { runs, reference };
  const { plan } = reference;
  const narrowed = (sample: NamedTensors): NamedTensors =>
    new Map([
      ...sample,
      ...casts.map(([name, cast]) => {
        const tensor = sample.get(name)!;
        return [
          name,
          inType(inType(cast === 'uint8' ? asCodes(tensor) : tensor, cast), tensor.dtype),
        ] as const;
      }),
    ]);
  runs = new SampleRuns(request, context, { ...plan, tensors: (sample) => narrowed(plan.tensors(sample)) });
  return { runs, reference: await runs.reference(quietly) };
}

/** Numbers of any range as whole ones from 0 to 255; those that are such stay. */
function asCodes(tensor: Tensor): Tensor {
  const values = float32Values(tensor);
  const isCode = values.every((value) => Number.isInteger(value) && value >= 0 && value <= 255);
  return isCode
    ? tensor
    : tensorFrom(
        'float32',
        tensor.shape,
        values.map((value) => Math.floor(Math.abs(value) * 97) % 256),
      );
}

/** Bytes of a model from which on a batch has two items: more take seconds each, and other samples are drawn anyway. */
const LARGE = 2 ** 28;

/** Of the files of a model. */
export const bytesOf = (model: OnnxModel): number =>
  [...new Set(model.files())].reduce((sum, file) => sum + statSync(file).size, 0);

/** Dimensions that the model and what was requested leave open. */
function openSizes({ reference, shapes = new Map() }: VerifyRequest): readonly OpenDimension[] {
  const all = viewModel(reference, (model) => openDimensions(interfaceOf(model.proto).inputs, usesOf(model)));
  return all.filter(({ places }) => !places.some(({ input }) => shapes.has(input)));
}

/** Ends around the sizes that ran, where what was folded under them shows: a batch of 1 and of 2, half and twice the size of others, which most strides divide. */
function otherSizes(
  open: readonly OpenDimension[],
  { reference, shapes: stated }: VerifyRequest,
  { plan }: ReferenceRun,
) {
  const isLarge = viewModel(reference, bytesOf) >= LARGE;
  const shapes = new Map(plan.inputs.map(({ name, shape }) => [name, shape]));
  const ends = (pick: (size: number, dimension: OpenDimension) => number) => {
    const sized = new Map([...shapes].map(([name, shape]) => [name, [...shape]]));
    for (const dimension of open)
      for (const { input, axis } of dimension.places) {
        const own = sized.get(input)!;
        own[axis] = pick(own[axis]!, dimension);
      }
    return sized;
  };
  const min = ends((size, { isBatch }) => (isBatch ? 1 : Math.max(1, size >> 1)));
  const own = ends((size, { isBatch }) => (isBatch && isLarge ? Math.min(size, 2) : size));
  const max = ends((size, { isBatch }) => (isBatch ? 2 : 2 * size));
  return Object.fromEntries(
    [...own].flatMap(([name, opt]) =>
      stated?.has(name) ? [] : [[name, { min: min.get(name)!, opt, max: max.get(name)!, values: false }]],
    ),
  );
}

/** Runs the edited model on what the original ran on, its values at cuts among them; its outputs get the names that they have in the original. */
async function candidateRun(
  path: string,
  { plan, outputs: originals }: ReferenceRun,
  links: Links,
  names: ReadonlyMap<string, string>,
  threads: number | undefined,
  context: EditContext,
): Promise<SideRun> {
  const { emit, signal, backEnds } = context;
  return closing(await openSession(path, { threads }, { emit, signal }, backEnds), async (session) => {
    const outputs: NamedTensors[] = [];
    for (const [at, values] of originals.entries()) {
      const sample = plan.tensors(at);
      const fed = session.inputs.map((input) => {
        const source = links.get(input.name)!.source!;
        return [input.name, inType(sample.get(source) ?? values.get(source)!, input.dtype)] as const;
      });
      const own = await session.run(new Map(fed), { signal });
      outputs.push(
        new Map([...own].flatMap(([name, tensor]) => (names.has(name) ? [[names.get(name)!, tensor]] : []))),
      );
    }
    const { inputs, backend, seedsRepeat, arithmetic } = session;
    const bindings = session.outputs.flatMap((binding) =>
      names.has(binding.name) ? [{ ...binding, name: names.get(binding.name)! }] : [],
    );
    return { inputs, bindings, outputs, backend, seedsRepeat, arithmetic, roundedValues: 0 };
  });
}

/** Each combination of shapes once. */
function shapesOf({ plan, outputs }: ReferenceRun): EditProof['shapes'] {
  const all = outputs.map((_, at) =>
    Object.fromEntries([...plan.tensors(at)].map(([name, { shape }]) => [name, [...shape]])),
  );
  return [...new Map(all.map((shapes) => [JSON.stringify(shapes), shapes])).values()];
}

const isUnable = (error: unknown, ...more: readonly ErrorCode[]): error is TrtforgeError =>
  error instanceof TrtforgeError && [...cannotRun, ...more].includes(error.code);
