import { closing } from '../../base/files/byte-source.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { runGuessed } from '../../engines/run/guessed-run.js';
import { inDtype } from '../../engines/run/inputs.js';
import { type Arithmetic, type OpenOptions, placeOptionsOf } from '../../engines/runtime/back-end.js';
import { chooseBackEnd, openSession } from '../../engines/runtime/open-session.js';
import type { Binding, Session } from '../../engines/runtime/session.js';
import { engineLoadOptionsOf } from '../../engines/runtime/tensorrt/engine-options.js';
import { TrtforgeError } from '../../errors.js';
import { viewModel } from '../../formats/onnx/model.js';
import { readNpz } from '../../formats/tensor/npz.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import type { Outputs } from './judge-runs.js';
import type { SampleInfo } from './judged.js';
import type { VerifyContext, VerifyRequest } from './request.js';
import { knownSamples, planSamples, readData, type SamplePlan } from './sample-plan.js';

/** One side after its run. */
export interface SideRun extends Outputs {
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
        remedy: `To compare two engines, compare their outputs: trtforge run ${reference} --inputs random -o a.npz, the same of the other one, and trtforge compare.`,
      });
    this.seed = request.seed ?? 0;
    this.#plan = plan;
    this.#request = request;
    this.#context = context;
    const options = { ...engineLoadOptionsOf(request), ...placeOptionsOf(request) };
    const { honours } = chooseBackEnd(candidate, options, context.backEnds);
    // Threads are for whichever side has any.
    this.#candidateOptions = honours.has('threads') ? { ...options, threads } : options;
  }

  /** What runs. Throws TF_INTERNAL before the reference has begun to run: what data have depends on the inputs of the model. */
  get plan(): SamplePlan {
    if (this.#plan !== undefined) return this.#plan;
    throw new TrtforgeError('TF_INTERNAL', 'No samples are planned before the reference runs.');
  }

  reference(onSample: OnSample, range?: SampleRange): Promise<ReferenceRun> {
    const { reference, threads } = this.#request;
    return this.#opened(reference, { threads }, async (session, run) => {
      const known = this.#plan;
      if (known !== undefined) return described(known, await this.#run(known, run, onSample, range), range);
      const { planned: plan, result: outputs } = await this.#planning(session, (planned) =>
        runGuessed(
          reference,
          (attempt) => {
            this.#plan = planned(attempt);
            return { planned: this.#plan, inputs: this.#plan.inputs };
          },
          (attempted) => this.#run(attempted, run, onSample, range),
        ),
      );
      return described(plan, outputs, range);
    });
  }

  /** The inputs and outputs that an npz file has, in the types of the reference, which is opened and does not run. Throws TF_BISECT_REFERENCE where one is not there. */
  recordedReference(recording: string): Promise<ReferenceRun> {
    const { reference, threads } = this.#request;
    const recorded = readNpz(recording);
    const tensor = (name: string): Tensor => {
      const found = recorded.get(name);
      if (found !== undefined) return found;
      throw new TrtforgeError(
        'TF_BISECT_REFERENCE',
        `${recording} has no tensor ${name}, which ${reference} has; it has ${[...recorded.keys()].join(', ') || 'none'}.`,
        {
          remedy: 'Write an npz file with every input and output of the model, under their names.',
          details: { tensor: name },
        },
      );
    };
    return this.#opened(reference, { threads }, async ({ inputs, outputs }) => {
      const values = inputs.map(
        (input) => [input.name, inDtype(input, tensor(input.name), recording)] as const,
      );
      const plan = knownSamples([new Map(values)], recording);
      return described(plan, [new Map(outputs.map(({ name }) => [name, tensor(name)]))]);
    });
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

  /** The outputs of the reference on some samples, by each change of their inputs. */
  async referenceChanged(
    { plan }: ReferenceRun,
    samples: readonly number[],
    changes: readonly ((inputs: NamedTensors) => NamedTensors)[],
  ): Promise<readonly (readonly NamedTensors[])[]> {
    const { reference, threads } = this.#request;
    const { changed } = await this.#opened(reference, { threads }, async (_session, run) => {
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
  ): Promise<SideRun> {
    return this.#opened(path, this.#candidateOptions, async (session, run) => {
      this.#checkSameInputs(inputs, session.inputs);
      const own: Run = (sample) => run(inTypesOf(session.inputs, sample));
      return { outputs: await this.#run(plan, own, onSample, range) };
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

/** The same numbers, in the types that the inputs take. */
export const inTypesOf = (inputs: readonly Binding[], sample: NamedTensors): NamedTensors =>
  new Map(
    inputs.map((input): [string, Tensor] => {
      const tensor = sample.get(input.name);
      if (tensor === undefined)
        throw new TrtforgeError('TF_INTERNAL', `No tensor was planned for ${input.name}.`);
      return [input.name, inDtype(input, tensor, 'the reference')];
    }),
  );
