import { TrtforgeError } from '../../errors.js';
import { attributeOf } from '../../formats/onnx/attributes.js';
import { viewModel } from '../../formats/onnx/model.js';
import {
  isStored,
  type Operation,
  operatorName,
  readFlow,
  type Value,
} from '../../formats/precision/flow.js';
import { floatFormatNamed } from '../../formats/precision/formats/index.js';
import { inlined } from '../../formats/precision/normalise.js';
import { drawsNumbers } from '../../formats/precision/operator-traits.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import { float32Values, floatTensor, type NamedTensors, type Tensor } from '../../formats/tensor/tensor.js';
import { NON_FINITE } from './checks.js';
import { failedOutputs, judgeRuns, type RunsJudgement } from './judge-runs.js';
import type { OwnNoise } from './judged.js';
import type { VerifyRequest } from './options.js';
import type { VerifyPrecision } from './result.js';
import type { ReferenceRun, SampleRuns, SideRun } from './sample-runs.js';

/**
 * The outputs of a model that depend on random numbers, each with a node that draws them. With `seedsRepeat` a node with a seed of its own is not random:
 * ONNX Runtime draws the same numbers from it in every process, TensorRT others.
 */
function randomOutputs(path: string, seedsRepeat: boolean): ReadonlyMap<string, string> {
  return viewModel(path, (model) => {
    const isFalse = ({ tensor }: Value) =>
      tensor !== undefined && [...model.weight(tensor).chunks()].every((bytes) => bytes[0] === 0);
    const draws = (operation: Operation) => {
      const { node, inputs } = operation;
      const training = node.opType === 'Dropout' ? inputs[2] : undefined;
      const isDropout = training !== undefined && !(isStored(training) && isFalse(training));
      if (!isDropout && !drawsNumbers(operatorName(operation))) return false;
      return !(seedsRepeat && attributeOf(node, 'seed') !== undefined);
    };
    const flow = readFlow(inlined(model).proto);
    const random = new Map<Value, string>();
    for (const operation of flow.operations) {
      const read = [...operation.inputs, ...operation.bodies.flatMap(({ outputs }) => outputs)];
      const from = read.find((value) => value !== undefined && random.has(value));
      const drawn = draws(operation) ? operation.label : from && random.get(from);
      if (drawn === undefined) continue;
      for (const output of operation.outputs) if (output !== undefined) random.set(output, drawn);
    }
    return new Map(
      flow.root.outputs.flatMap((value) => {
        const drawn = value && random.get(value);
        return value === undefined || drawn === undefined ? [] : [[value.name, drawn] as const];
      }),
    );
  });
}

/** Why a failure of an output shows nothing, by output: it depends on random numbers, or the reference does not agree with itself in a second run over the samples up to the first that failed. */
export async function unrepeatable(
  request: VerifyRequest,
  precision: VerifyPrecision,
  judgement: RunsJudgement,
  runs: SampleRuns,
  { reference, candidate }: { readonly reference: ReferenceRun; readonly candidate: SideRun },
): Promise<ReadonlyMap<string, string>> {
  const failed = failedOutputs(judgement);
  const doubts = new Map<string, string>();
  if (failed.length === 0) return doubts;
  const random = randomOutputs(request.reference, candidate.seedsRepeat);
  const unexplained = failed.filter(({ name }) => {
    const node = random.get(name);
    if (node !== undefined) doubts.set(name, `${name} depends on the random numbers that ${node} draws.`);
    return node === undefined;
  });
  if (unexplained.length === 0) return doubts;
  const last = Math.max(...unexplained.map(({ sample }) => sample));
  // All samples before it too: a generator with a seed goes on from run to run.
  const again = await runs.referenceAgain(reference, last + 1);
  for (const { name, sample } of unexplained) {
    const bindings = reference.bindings.filter((binding) => binding.name === name);
    const run = (outputs: readonly NamedTensors[]) => ({
      bindings,
      outputs: outputs.slice(sample, sample + 1),
    });
    const itself = judgeRuns(request, precision, run(reference.outputs), run(again));
    if (failedOutputs(itself).length > 0)
      doubts.set(
        name,
        `${name}: the reference differs from itself in a second run on sample ${sample}, so it cannot judge the candidate.`,
      );
  }
  return doubts;
}

/** A reference judges others only where it passes itself: the first samples run once more. Throws TF_BISECT_REFERENCE, with `model` as its name, and what running throws. */
export async function assertRepeats(
  request: VerifyRequest,
  precision: VerifyPrecision,
  runs: SampleRuns,
  reference: ReferenceRun,
  samples: number,
  model = request.reference,
): Promise<void> {
  const again = await runs.referenceAgain(reference, samples);
  const first = { ...reference, outputs: reference.outputs.slice(0, samples) };
  const judgement = judgeRuns(request, precision, first, { ...reference, outputs: again });
  const [failed] = failedOutputs(judgement);
  if (failed === undefined) return;
  const doubts = await unrepeatable(request, precision, judgement, runs, {
    reference: first,
    candidate: first,
  });
  const [why = ''] = reasonsOf(judgement);
  throw cannotJudge(
    model,
    failed.name,
    doubts.get(failed.name) ?? `its output ${failed.name} differs in a second run. ${why}`,
  );
}

/** Where every output that failed depends on random numbers, no candidate can pass or fail. */
export function assertDecides(
  reference: string,
  failed: readonly { readonly name: string }[],
  doubts: ReadonlyMap<string, string>,
): void {
  const [first] = failed;
  const doubt = first && doubts.get(first.name);
  if (doubt === undefined || failed.some(({ name }) => !doubts.has(name))) return;
  throw cannotJudge(reference, first?.name, doubt);
}

const cannotJudge = (reference: string, tensor: string | undefined, doubt: string) =>
  new TrtforgeError('TF_BISECT_REFERENCE', `${reference} cannot judge a candidate: ${doubt}`, {
    remedy: 'Pass a model that repeats: replace nodes that draw random numbers by constants.',
    details: { tensor },
  });

/** Why outputs failed. */
export const reasonsOf = ({ judged, broken }: RunsJudgement): readonly string[] => [
  ...broken.map(({ reason }) => reason),
  ...judged.filter(({ output }) => output.outcome === 'fail').flatMap(({ output }) => output.reasons),
];

/** Steps of a type at 1: the distance to the next number. */
const STEPS: Readonly<Partial<Record<string, number>>> = { float16: 2 ** -10, bfloat16: 2 ** -7 };
const STEP_OF_FP32 = 2 ** -23;

/**
 * Runs the reference once more on the samples that failed, with every float input moved up or down by one step of FP32 of its usual size, zeros included, and
 * where the candidate computes in 16 bits with inputs rounded to them. What moves by more than the limits then cannot judge; of the user's samples a rounded one can. Each sample runs once, whatever the candidate.
 */
export class OwnNoises {
  readonly #request: VerifyRequest;
  readonly #runs: SampleRuns;
  readonly #reference: ReferenceRun;
  readonly #typed: FloatDtype | undefined;
  readonly #judge: (outputs: readonly NamedTensors[]) => RunsJudgement;
  readonly #moved = new Map<number, NamedTensors>();
  readonly #rounded = new Map<number, NamedTensors>();

  constructor(
    request: VerifyRequest,
    precision: VerifyPrecision,
    runs: SampleRuns,
    reference: ReferenceRun,
    known: Parameters<typeof judgeRuns>[4],
  ) {
    this.#request = request;
    this.#runs = runs;
    this.#reference = reference;
    this.#typed = floatFormatNamed(precision)?.dtype as FloatDtype | undefined;
    const alike = { ...known, plant: false };
    this.#judge = (outputs) => judgeRuns(request, precision, reference, { ...reference, outputs }, alike);
  }

  /** Of a judgement in which floats failed; undefined where the original moves nowhere beyond the limits. */
  async of({ judged }: RunsJudgement): Promise<OwnNoise | undefined> {
    const { atol = [], rtol = [] } = this.#request;
    const isAsked = (output: string) => [...atol, ...rtol].some(({ name }) => (name ?? output) === output);
    const failed = judged.filter(
      ({ output }) => !output.pass && output.nonFinite !== undefined && !isAsked(output.name),
    );
    if (failed.length === 0) return undefined;
    const { outputs } = this.#reference;
    const samplesOf = ({ failures }: RunsJudgement['judged'][number]) =>
      failures.length > 0 ? failures.map(({ chunk }) => chunk) : [...outputs.keys()];
    const samples = [...new Set(failed.flatMap(samplesOf))];
    await this.#run(samples.filter((sample) => !this.#moved.has(sample)));
    const beyond = (changed: ReadonlyMap<number, NamedTensors>) => {
      if (changed.size === 0) return new Map<string, ReadonlyMap<number, number>>();
      const own = this.#judge(outputs.map((tensors, at) => changed.get(at) ?? tensors));
      return new Map(
        own.judged
          .filter(({ output }) => !output.pass && failed.some((one) => one.output.name === output.name))
          .map(({ output, failures }) => [
            output.name,
            failures.length > 0
              ? new Map(
                  failures.map(({ chunk, kind, maxAbs }) => [
                    chunk,
                    kind === NON_FINITE ? Number.NaN : maxAbs,
                  ]),
                )
              : new Map(samples.map((sample) => [sample, Number(output.statistics[0]?.amount)])),
          ]),
      );
    };
    const isData = (sample: number) => this.#reference.samples[sample]?.kind === 'data';
    const unstable = new Map(beyond(this.#moved));
    const rounded = new Map<string, number>();
    for (const [name, moved] of beyond(this.#rounded)) {
      const [first] = [...moved.keys()].filter(isData);
      if (first !== undefined) rounded.set(name, first);
      const drawn = [...moved].filter(([sample]) => !isData(sample));
      if (drawn.length > 0) unstable.set(name, new Map([...drawn, ...(unstable.get(name) ?? [])]));
    }
    return unstable.size + rounded.size === 0 ? undefined : { unstable, rounded };
  }

  /** The outputs of a sample with moved inputs; undefined for one that did not fail. */
  moved = (sample: number): NamedTensors | undefined => this.#moved.get(sample);

  async #run(samples: readonly number[]): Promise<void> {
    if (samples.length === 0) return;
    const { plan, samples: infos } = this.#reference;
    const typical = infos.flatMap(({ kind }, at) => (kind === 'edge' ? [] : [at]));
    const usual = usualSizes(typical.slice(0, 3).map(plan.tensors));
    const moved = (inputs: NamedTensors) =>
      changed(inputs, (value, at, { name, dtype }) => {
        const step = (STEPS[dtype] ?? STEP_OF_FP32) * (usual.get(name) ?? 0);
        return value + (isUp(at) ? step : -step);
      });
    const typed = this.#typed;
    const rounded = (inputs: NamedTensors) =>
      new Map(
        [...inputs].map(([name, tensor]) => {
          if (typed === undefined || tensor.dtype !== 'float32') return [name, tensor];
          const narrow = floatTensor(typed, tensor.shape, float32Values(tensor));
          return [name, floatTensor('float32', tensor.shape, float32Values(narrow))];
        }),
      );
    const changes = [moved, ...(typed === undefined ? [] : [rounded])];
    const outputs = await this.#runs.changed(this.#reference, samples, changes);
    for (const [index, sample] of samples.entries()) {
      this.#moved.set(sample, outputs[0]![index]!);
      const after = outputs[1]?.[index];
      if (after !== undefined) this.#rounded.set(sample, after);
    }
  }
}

/** Half of the elements, in no order that a model has. */
const isUp = (at: number): boolean => Math.imul(at + 1, 0x9e3779b1) >>> 31 === 1;

type FloatDtype = Parameters<typeof floatTensor>[0];

const isFloat = (tensor: Tensor): tensor is Tensor & { readonly dtype: FloatDtype } =>
  dtypes[tensor.dtype].kind === 'float' && [16, 32].includes(dtypes[tensor.dtype].bits);

/** The root mean square of each float input over some samples. None for whole numbers: an index or a mask has no steps. */
function usualSizes(samples: readonly NamedTensors[]): ReadonlyMap<string, number> {
  const [first = new Map<string, Tensor>()] = samples;
  return new Map(
    [...first].flatMap(([name, tensor]) => {
      if (!isFloat(tensor)) return [];
      const values = samples.map((sample) => float32Values(sample.get(name) ?? tensor));
      if (values.every((each) => each.every(Number.isInteger))) return [];
      const squares = values.reduce(
        (sum, each) => sum + each.reduce((all, value) => all + value * value, 0),
        0,
      );
      const count = values.reduce((sum, { length }) => sum + length, 0);
      return [[name, Math.sqrt(squares / count)]];
    }),
  );
}

const changed = (
  inputs: NamedTensors,
  change: (value: number, at: number, input: { readonly name: string; readonly dtype: Dtype }) => number,
): NamedTensors =>
  new Map(
    [...inputs].map(([name, tensor]) => {
      if (!isFloat(tensor)) return [name, tensor];
      const { dtype } = tensor;
      const values = float32Values(tensor).map((value, at) => change(value, at, { name, dtype }));
      return [name, floatTensor(dtype, tensor.shape, values)];
    }),
  );
