import { closing } from '../../base/files/byte-source.js';
import { valuesOf } from '../../base/options/option.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { assertAsDeclared, runGuessed } from '../../engines/run/guessed-run.js';
import { inTypesOf } from '../../engines/run/input-dtype.js';
import { type Arithmetic, type OpenOptions, placeOptions } from '../../engines/runtime/back-end.js';
import { chooseBackEnd, openSession } from '../../engines/runtime/open-session.js';
import type { Binding, Session } from '../../engines/runtime/session.js';
import { engineOptions } from '../../engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../errors.js';
import { viewModel } from '../../formats/onnx/model.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import { type NamedTensors, numbersOf, type Tensor } from '../../formats/tensor/tensor.js';
import type { Outputs } from './judge-runs.js';
import type { SampleInfo } from './judged.js';
import type { VerifyContext, VerifyRequest } from './options.js';
import type { VerifyResult } from './result.js';
import { planSamples, readData, type SamplePlan, without } from './sample-plan.js';

/** One side after its run. */
export interface SideRun extends Outputs {
  /** The outputs that are finite at each level of the plan's head-room, where that was tried. */
  readonly finite?: readonly ReadonlySet<string>[];
  readonly inputs: readonly Binding[];
  readonly backend: string;
  /** Values that were computed in float32 and rounded to 16 bits. */
  readonly roundedValues: number;
  /** Whether a random node with a seed of its own draws the same numbers in every process. */
  readonly seedsRepeat: boolean;
  readonly arithmetic: Arithmetic;
}

/** One side while nothing was run. */
export type OpenedSide = Omit<SideRun, 'outputs'>;

export interface ReferenceRun extends SideRun {
  readonly plan: SamplePlan;
  readonly samples: readonly SampleInfo[];
}

/** Samples from one up to another, which is not among them; there are none beyond `SamplePlan.most`. */
export interface SampleRange {
  readonly from: number;
  readonly to: number;
}

type OnSample = (sample: number) => void;
type Run = (inputs: NamedTensors) => Promise<NamedTensors>;

/**
 * Runs the two sides of a verification on the same samples, one after the other: only one model is in memory at a time. A range of samples is run, by default
 * the first round; the outputs are those of the range. Sizes that were guessed in the first run of the reference stay.
 */
export class SampleRuns {
  readonly seed: number;
  readonly #request: VerifyRequest;
  readonly #context: VerifyContext;
  readonly #candidateOptions: OpenOptions;
  #plan: SamplePlan | undefined;

  /**
   * `plan` is that of an earlier run on the same inputs. Throws TF_USAGE for a reference that is an engine, and for options that the candidate's back end does
   * not honour.
   */
  constructor(request: VerifyRequest, context: VerifyContext, plan?: SamplePlan) {
    const { reference, candidate, threads } = request;
    if (isEngineFile(reference))
      throw new TrtforgeError('TF_USAGE', `${reference} is an engine; the reference is an ONNX model.`, {
        remedy: `To compare two engines, compare their outputs: \`trtforge run ${reference} --inputs random -o a.npz\`, the same of the other one, and \`trtforge compare\`.`,
      });
    this.seed = request.seed ?? 0;
    this.#plan = plan;
    this.#request = request;
    this.#context = context;
    const options = { ...valuesOf(engineOptions, request), ...valuesOf(placeOptions, request) };
    const { honours } = chooseBackEnd(candidate, options, context.backEnds);
    // Threads are for whichever side has any.
    this.#candidateOptions = honours.has('threads') ? { ...options, threads } : options;
  }

  /** The plan that runs. Throws TF_INTERNAL before the reference has begun to run: the samples of data depend on the inputs of the model. */
  get plan(): SamplePlan {
    if (this.#plan !== undefined) return this.#plan;
    throw new TrtforgeError('TF_INTERNAL', 'No samples are planned before the reference runs.');
  }

  /** `isProbed`: the head-room of the plan is tried too. */
  reference(onSample: OnSample, range?: SampleRange, isProbed = false): Promise<ReferenceRun> {
    const { reference, threads } = this.#request;
    return this.#opened(reference, { threads }, async (session, runModel) => {
      const run: Run = async (inputs) => {
        const outputs = await runModel(inputs);
        assertAsDeclared(reference, session, inputs, outputs);
        return outputs;
      };
      const known = this.#plan;
      const ran =
        known === undefined
          ? await this.#planning(session, (planned) =>
              runGuessed(
                reference,
                (attempt) => {
                  this.#plan = planned(attempt);
                  return { planned: this.#plan, inputs: this.#plan.inputs };
                },
                (attempted) => this.#runThose(attempted, run, onSample, range),
                ({ plan }) => plan.leftOut.filter(({ kind }) => kind !== 'edge').length,
              ),
            )
          : { result: await this.#runThose(known, run, onSample, range) };
      const { plan, outputs } = ran.result;
      this.#plan = plan;
      return { ...described(plan, outputs, range), finite: isProbed ? await finiteAt(plan, run) : undefined };
    });
  }

  /** The outputs of the samples that run; others take the place of those that do not. Throws what running throws where none of a first round does. */
  async #runThose(
    planned: SamplePlan,
    run: Run,
    onSample: OnSample,
    { from, to }: SampleRange = { from: 0, to: planned.firstRound },
  ) {
    let plan = planned;
    const outputs: NamedTensors[] = [];
    while (from + outputs.length < Math.min(to, plan.most)) {
      const sample = from + outputs.length;
      onSample(sample);
      try {
        outputs.push(await run(plan.tensors(sample)));
      } catch (error) {
        const isHopeless = sample === 0 && plan.leftOut.length >= planned.firstRound - 1;
        if (!isRunFailure(error) || isHopeless) throw error;
        plan = without(plan, sample, error.message);
      }
    }
    return { plan, outputs };
  }

  /** Plans the samples of the open reference, at the sizes of an attempt. */
  async #planning<T>(
    session: Session,
    use: (planned: (attempt: number) => SamplePlan) => Promise<T>,
  ): Promise<T> {
    const { reference, data } = this.#request;
    checkToleranceNames(this.#request, session.outputs);
    const { inputs } = session;
    const { emit, signal } = this.#context;
    const read = data && (await readData(data, inputs, this.#request, signal));
    for (const message of read?.warnings ?? [])
      emit?.({ type: 'log', source: 'trtforge', severity: 'warning', message });
    return viewModel(
      reference,
      async (model) =>
        await use((attempt) => planSamples(model, inputs, this.#request, read ?? null, attempt)),
    );
  }

  /** The outputs of a second run of the first samples. */
  async referenceAgain({ plan }: ReferenceRun, samples: number): Promise<readonly NamedTensors[]> {
    const { reference, threads } = this.#request;
    const again = await this.#opened(reference, { threads }, async (_session, run) => ({
      outputs: await this.#run(plan, run, () => {}, { from: 0, to: samples }),
    }));
    return again.outputs;
  }

  /** The outputs of the reference, or of a variant of it, on some samples, by each change of their inputs. */
  async changed(
    { plan }: ReferenceRun,
    samples: readonly number[],
    changes: readonly ((inputs: NamedTensors) => NamedTensors)[],
    path = this.#request.reference,
  ): Promise<readonly (readonly NamedTensors[])[]> {
    const { threads } = this.#request;
    const { changed } = await this.#opened(path, { threads }, async (_session, run) => {
      const changed: NamedTensors[][] = changes.map(() => []);
      for (const sample of samples)
        for (const [at, change] of changes.entries())
          changed[at]!.push(await run(change(plan.tensors(sample))));
      return { outputs: [], changed };
    });
    return changed;
  }

  /** Runs the candidate, or another model in its place. Throws TF_VERIFY_MISMATCH where it has other inputs than the reference. */
  candidate(
    path: string,
    { plan, inputs }: Pick<ReferenceRun, 'plan' | 'inputs'>,
    onSample: OnSample,
    range?: SampleRange,
    isProbed = false,
  ): Promise<SideRun> {
    return this.#opened(path, this.#candidateOptions, async (session, run) => {
      this.#checkSameInputs(inputs, session.inputs);
      const own: Run = (sample) => run(inTypesOf(session.inputs, sample, 'the reference'));
      const outputs = await this.#run(plan, own, onSample, range);
      return { outputs, finite: isProbed ? await finiteAt(plan, own) : undefined };
    });
  }

  async #run(
    { tensors, firstRound, most }: SamplePlan,
    run: Run,
    onSample: OnSample,
    { from, to }: SampleRange = { from: 0, to: firstRound },
  ) {
    const outputs: NamedTensors[] = [];
    for (let sample = from; sample < Math.min(to, most); sample++) {
      onSample(sample);
      outputs.push(await run(tensors(sample)));
    }
    return outputs;
  }

  async #opened<T>(
    path: string,
    options: OpenOptions,
    work: (session: Session, run: Run) => Promise<T>,
  ): Promise<T & OpenedSide> {
    const { signal, backEnds } = this.#context;
    return closing(await openSession(path, options, this.#context, backEnds), async (session) => {
      const found = await work(session, (inputs) => session.run(inputs, { signal }));
      const { roundedValues } = await session.facts();
      const { inputs, outputs: bindings, backend, seedsRepeat, arithmetic } = session;
      return { inputs, bindings, backend, seedsRepeat, arithmetic, roundedValues, ...found };
    });
  }

  #checkSameInputs(reference: readonly Binding[], candidate: readonly Binding[]): void {
    const names = (inputs: readonly Binding[]) => inputs.map(({ name }) => name).sort();
    if (names(reference).join('\n') === names(candidate).join('\n')) return;
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `${this.#request.candidate} has the inputs ${names(candidate).join(', ')}; ${this.#request.reference} has ${names(reference).join(', ')}.`,
    );
  }
}

/** A level that does not run has no finite output. */
async function finiteAt({ headRoom }: SamplePlan, run: Run): Promise<ReadonlySet<string>[]> {
  const finite: ReadonlySet<string>[] = [];
  for (const { tensors } of headRoom) {
    const outputs = await run(tensors()).catch((error: unknown): NamedTensors => {
      if (isRunFailure(error)) return new Map();
      throw error;
    });
    const isWhole = ([, tensor]: readonly [string, Tensor]) =>
      dtypes[tensor.dtype].kind === 'float' && Array.prototype.every.call(numbersOf(tensor), Number.isFinite);
    finite.push(new Set([...outputs].filter(isWhole).map(([name]) => name)));
  }
  return finite;
}

const isRunFailure = (error: unknown): error is TrtforgeError =>
  error instanceof TrtforgeError && error.code === 'TF_ONNXRUNTIME_FAILED';

/** Largest inputs before the candidate makes NaN or infinity of finite reference values; undefined if untried, or without finite reference output. */
export function headRoomOf(
  { headRoom }: SamplePlan,
  reference: SideRun,
  candidate: SideRun,
): VerifyResult['headRoom'] {
  let found: VerifyResult['headRoom'];
  for (const [at, { upTo, drawnUpTo, inputs, isFree }] of headRoom.entries()) {
    const held = [...(reference.finite?.[at] ?? [])];
    if (held.length === 0) break;
    const outputs = held.filter((name) => has(candidate, name) && !candidate.finite?.[at]?.has(name));
    const finiteUpTo = outputs.length === 0 ? upTo : (found?.finiteUpTo ?? drawnUpTo);
    const all = inputs.join(', ');
    const message = `The candidate is finite up to inputs of about ${finiteUpTo} (${all}).`;
    found = { inputs: [...inputs], finiteUpTo, failsAt: null, outputs, isFree, message };
    if (outputs.length === 0) continue;
    const range = (most: number) =>
      inputs.map((name) => `--val-range '${name}:[-${most},${most}]'`).join(' ');
    const cure = isFree
      ? ` The graph takes inputs of any size. If they get as large, keep the nodes that overflow in FP32 (bisect with ${range(upTo)} finds them) or convert to BF16; if not, pass ${range(finiteUpTo)}, or real samples: --inputs.`
      : '';
    const lost = `${outputs.join(', ')}: NaN or infinity where ${all} reaches ${upTo}, of which the reference has none.`;
    return { ...found, failsAt: upTo, message: `${lost} ${message}${cure}` };
  }
  return found;
}

const has = ({ bindings }: SideRun, name: string) => bindings.some((binding) => binding.name === name);

/** Outputs of both sides stay in memory until they are judged. */
const MOST_BYTES = 2 ** 30;

/** Most samples that a comparison may go on to, after some ran. */
export function mostSamples(
  { reference, candidate }: { readonly reference: Outputs; readonly candidate: Outputs },
  { most }: SamplePlan,
): number {
  const bytes = [...reference.outputs, ...candidate.outputs]
    .flatMap((tensors) => [...tensors.values()])
    .reduce((sum, tensor) => sum + tensor.bytes.byteLength, 0);
  return Math.min(most, Math.floor((MOST_BYTES / Math.max(1, bytes)) * reference.outputs.length));
}

const described = (plan: SamplePlan, outputs: readonly NamedTensors[], { from }: SampleRange = START) => ({
  plan,
  outputs,
  samples: outputs.map((_, at) => plan.info(from + at)),
});

const START: SampleRange = { from: 0, to: 0 };

/** A misspelt name would silently leave its output to the usual limits. */
function checkToleranceNames(
  { reference, atol = [], rtol = [] }: VerifyRequest,
  outputs: readonly Binding[],
): void {
  const known = outputs.map(({ name }) => name);
  const wrong = [...atol, ...rtol].find(({ name }) => name !== null && !known.includes(name));
  if (wrong === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${reference} has no output ${wrong.name}; it has ${known.join(', ')}.`,
    { remedy: 'Pass tolerances by the names of the outputs.' },
  );
}
