import { inTypesOf } from '../../engines/run/input-dtype.js';
import type { Session } from '../../engines/runtime/session.js';
import type {
  EngineBinding,
  EngineContext,
  EngineSession,
  PreparedCall,
} from '../../engines/runtime/tensorrt/engine-interface.js';
import { TrtforgeError } from '../../errors.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { worst } from '../verify/outcome.js';
import type { AnswerCase, AnsweredOutput, KnownAnswer } from './answer.js';
import { type JudgedAnswer, judgeAnswer, judgeCase } from './judge.js';
import { madeInputs, outputRows, rowsOf, runSteps, sameRows } from './made-inputs.js';
import type { AnswerCheck } from './result.js';
import { comparedAs, MOST_PLACES, type Sketch, sketchOf } from './sketch.js';

interface Mode {
  /** null: the runner's own choice. */
  readonly profile: number | null;
  readonly graph?: boolean;
  /** Which of two contexts, which may run at the same time. */
  readonly context?: 0 | 1;
}

/** The runner that is checked: it takes inputs in the types of the reference. */
export interface Runner {
  /** Whether it has CUDA graphs and contexts. */
  readonly isEngine: boolean;
  /** Why the last graph was none; null where it was one. */
  readonly graphFallback: string | null;
  run(inputs: NamedTensors, mode: Mode): Promise<NamedTensors>;
}

/** A session of any back end: graphs and contexts are its own matter. */
export const sessionRunner = (session: Session, signal?: AbortSignal): Runner => ({
  isEngine: false,
  graphFallback: null,
  run: (inputs) => session.run(inTypesOf(session.inputs, inputs, 'the known answer'), { signal }),
});

/** An engine that is open; calls are made once for each shape and mode, and end with the runner. */
export class EngineRunner implements Runner, AsyncDisposable {
  readonly isEngine = true;
  graphFallback: string | null = null;
  readonly #session: EngineSession;
  readonly #signal: AbortSignal | undefined;
  readonly #contexts: EngineContext[] = [];
  readonly #calls = new Map<string, PreparedCall>();

  constructor(session: EngineSession, signal?: AbortSignal) {
    this.#session = session;
    this.#signal = signal;
  }

  async run(inputs: NamedTensors, { profile, graph = false, context = 0 }: Mode): Promise<NamedTensors> {
    const tensors = inTypesOf(this.#session.inputs, inputs, 'the known answer');
    const missing = this.#session.inputs.find(({ name }) => !tensors.has(name));
    if (missing !== undefined)
      throw new TrtforgeError('TF_SESSION_INPUT', `The known answer has no input ${missing.name}.`);
    const key = JSON.stringify([profile, graph, context, ...this.#session.inputs.map(shapeKey(tensors))]);
    let call = this.#calls.get(key);
    if (call === undefined) {
      this.#contexts[context] ??= this.#session.context();
      call = await this.#contexts[context].prepare(this.#shapes(tensors), {
        ...(profile === null ? {} : { profile }),
        cudaGraph: graph ? 'always' : 'never',
        signal: this.#signal,
      });
      this.#calls.set(key, call);
    }
    if (graph) this.graphFallback = call.cudaGraphFallback;
    for (const { name, hostValues } of this.#session.inputs)
      if (!hostValues) call.input(name).bytes.set(tensors.get(name)!.bytes);
    await call.run({ signal: this.#signal });
    return new Map(this.#session.outputs.map(({ name }) => [name, copyOf(call.output(name))]));
  }

  /** Dimensions, of inputs that are read on the host their values. */
  #shapes(tensors: NamedTensors): ReadonlyMap<string, readonly number[] | Tensor> {
    return new Map(
      this.#session.inputs.map(({ name, hostValues }) => {
        const tensor = tensors.get(name)!;
        return [name, hostValues ? tensor : tensor.shape];
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const call of this.#calls.values()) call.close();
    await Promise.all(this.#contexts.map((context) => context?.close()));
  }
}

/** Values that are read on the host are fixed in a call. */
const shapeKey =
  (tensors: NamedTensors) =>
  ({ name, hostValues }: EngineBinding): unknown => {
    const { shape, bytes } = tensors.get(name)!;
    return hostValues ? [shape, [...bytes]] : shape;
  };

const copyOf = ({ dtype, shape, bytes }: Tensor): Tensor => ({ dtype, shape, bytes: Buffer.from(bytes) });

/** The results of the checks, and the engine's outputs in every case. */
export interface Checked {
  readonly checks: readonly AnswerCheck[];
  readonly found: readonly (readonly Sketch[])[];
}

/** TensorRT 8.6's report of a second context with the same profile. */
const LENT = /has been chosen by another IExecutionContext/;

/** Turns of two contexts at once. */
const TURNS = 4;

/**
 * Checks an engine: every case of its known answer; the same inputs `repeat` times; rows of a batch that are the same; a CUDA graph beside none; two contexts at
 * once. A check that fails to run is inconclusive, and fails where the engine itself reports an error. Throws TF_CANCELLED.
 */
export async function runChecks(runner: Runner, answer: KnownAnswer, repeat = 3): Promise<Checked> {
  const { cases } = answer;
  const found: Sketch[][] = [];
  const checks: AnswerCheck[] = [];
  for (const each of cases) {
    const own: Sketch[] = [];
    found.push(own);
    checks.push(
      await timed('answer', each.name, async () => {
        own.push(...sketchesOf(each, await runCase(runner, answer, each)));
        return judgeCase(each, own);
      }),
    );
  }
  // An engine is compared with itself at the smallest sizes: buffers of the largest take longer to make than to run.
  const [first] = cases.toSorted((a, b) => a.steps - b.steps || elementsOf(a) - elementsOf(b));
  if (first === undefined) return { checks, found };
  const { profile } = first;
  const made = [0, 1].map((sample) => madeInputs(answer, first.inputs, sample));
  const make = (sample: number) => made[sample]!;
  const plain: NamedTensors[] = [];
  const beside = (own: NamedTensors, sample: number) => compared(first, plain[sample]!, own);
  checks.push(
    await timed('repeat', first.name, async () => {
      for (const sample of [0, 1]) plain.push(await runner.run(make(sample), { profile }));
      const all: JudgedAnswer[] = [];
      for (let run = 1; run < repeat; run++) all.push(...beside(await runner.run(make(0), { profile }), 0));
      return all;
    }),
  );
  if (plain.length < 2) return { checks, found };
  if (answer.rows !== null && cases[answer.rows] !== undefined)
    checks.push(await checkRows(runner, answer, cases[answer.rows]!));
  if (!runner.isEngine) return { checks, found };
  checks.push(
    await timed('graph', first.name, async () => {
      const all: JudgedAnswer[] = [];
      // A graph that is stale gives what it gave before: so with other inputs, and with the first ones again.
      for (const sample of [0, 1, 0])
        all.push(...beside(await runner.run(make(sample), { profile, graph: true }), sample));
      return runner.graphFallback ?? all;
    }),
    await timed('contexts', first.name, async () => {
      const all: JudgedAnswer[] = [];
      for (let turn = 0; turn < TURNS; turn++) {
        const both = ([0, 1] as const).map((context) => runner.run(make(context), { profile, context }));
        const outputs = await Promise.all(both).catch((error: Error) => {
          if (LENT.test(error.message)) return 'this TensorRT lends a profile to one context at a time';
          throw error;
        });
        if (typeof outputs === 'string') return outputs;
        for (const [sample, own] of outputs.entries()) all.push(...beside(own, sample));
      }
      return all;
    }),
  );
  return { checks, found };
}

const elementsOf = ({ inputs }: AnswerCase): number =>
  inputs.reduce((sum, { shape }) => sum + elementCount(shape), 0);

/** The outputs of an engine in a case. */
const runCase = (runner: Runner, answer: KnownAnswer, each: AnswerCase): Promise<NamedTensors> => {
  const run = (inputs: NamedTensors) => runner.run(inputs, each);
  return each.steps > 1
    ? runSteps(run, { ...each, seed: answer.seed, state: answer.state })
    : run(madeInputs(answer, each.inputs));
};

const sketchesOf = ({ outputs }: AnswerCase, found: NamedTensors): readonly Sketch[] =>
  outputs.flatMap(({ name, as, sums, slices }) => {
    const tensor = found.get(name);
    return tensor === undefined ? [] : [sketchOf(name, tensor, as, sums.length, slices?.axis)];
  });

/** Runs the rows of a case that are all its first one: each has to give what the first one gives. */
const checkRows = (runner: Runner, answer: KnownAnswer, each: AnswerCase): Promise<AnswerCheck> =>
  timed('rows', each.name, async () => {
    const { inputs, profile } = each;
    const rows = rowsOf(inputs)!;
    const outputs = await runner.run(sameRows(madeInputs(answer, inputs), inputs), { profile });
    return [...outputs].flatMap(([name, tensor]) => {
      const [first, ...others] = outputRows(tensor, rows) ?? [];
      return others.flatMap((row, at) =>
        compared(each, new Map([[name, first!]]), new Map([[name, row]]), ` of row ${at + 1}`),
      );
    });
  });

/** Outputs of one run beside those of another that should give the same. */
function compared(
  { outputs }: AnswerCase,
  expected: NamedTensors,
  found: NamedTensors,
  of = '',
): readonly JudgedAnswer[] {
  return [...expected].map(([name, tensor]) => {
    const own = found.get(name);
    if (own !== undefined && Buffer.compare(own.bytes, tensor.bytes) === 0) return SAME;
    const known = outputs.find((output) => output.name === name);
    const as = known?.as ?? comparedAs(tensor, false);
    // A row has an axis less than the output.
    const axis = known?.slices ? known.slices.axis - known.shape.length + tensor.shape.length : -1;
    const sketch = sketchOf(`${name}${of}`, tensor, as, MOST_PLACES, axis);
    const limit = known?.limit ?? ownLimit(sketch);
    const other = own && sketchOf(name, own, as, MOST_PLACES, axis);
    return judgeAnswer({ ...sketch, limit, measured: null }, other);
  });
}

const SAME: JudgedAnswer = { outcome: 'pass', reason: null, wrong: null, measured: null };

/** Most that runs of one engine may differ where an output has no answer, in shares of it: they are the same kernels. */
const OWN_RUNS = { rms: 0.02, max: 0.1 };

function ownLimit({ l2, max, as, shape }: Sketch): AnsweredOutput['limit'] {
  if (as === 'exact') return { rms: OWN_RUNS.rms, max: 0 };
  return { rms: (OWN_RUNS.rms * l2) / Math.sqrt(Math.max(1, elementCount(shape))), max: OWN_RUNS.max * max };
}

/** One check; a text instead of judgements is why it did not run. */
async function timed(
  id: AnswerCheck['id'],
  of: string,
  work: () => Promise<readonly JudgedAnswer[] | string>,
): Promise<AnswerCheck> {
  const started = performance.now();
  const done = (more: Omit<AnswerCheck, 'id' | 'case' | 'ms'>): AnswerCheck => ({
    id,
    case: of,
    ms: performance.now() - started,
    ...more,
  });
  const none = { bitwise: null, wrong: null };
  try {
    const judged = await work();
    if (typeof judged === 'string') return done({ ...none, outcome: null, reasons: [judged] });
    const outcome = worst(['pass', ...judged.map((one) => one.outcome)]);
    const decisive = judged.find((one) => one.outcome === outcome);
    const reasons = new Set(judged.flatMap(({ reason }) => reason ?? []));
    return done({
      outcome,
      bitwise: id === 'answer' ? null : judged.every((one) => one === SAME),
      reasons: [...reasons].slice(0, MOST_REASONS).map((reason) => `${of}: ${reason}`),
      wrong: decisive?.wrong ?? null,
    });
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    const outcome = error.code === 'TF_RUN_FAILED' ? 'fail' : 'inconclusive';
    return done({ ...none, outcome, reasons: [`${of}: ${error.message} (${error.code})`] });
  }
}

/** Of one check: a model may have hundreds of outputs. */
const MOST_REASONS = 4;
