import { floatFormatNamed } from '../../formats/precision/formats/index.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import { float32Values, floatTensor, type NamedTensors, type Tensor } from '../../formats/tensor/tensor.js';
import { NON_FINITE } from './checks.js';
import { judgeRuns, type RunsJudgement } from './judge-runs.js';
import type { OwnNoise } from './judged.js';
import type { VerifyRequest } from './request.js';
import type { VerifyPrecision } from './result.js';
import type { ReferenceRun, SampleRuns } from './sample-runs.js';

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
