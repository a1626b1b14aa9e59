import { join } from 'node:path';
import { closing } from '../../base/files/byte-source.js';
import { statIfThere } from '../../base/files/files.js';
import { protectingInputs } from '../../base/files/user-files.js';
import * as is from '../../base/options/kinds.js';
import { contextOptions, type OptionsOf, optional } from '../../base/options/option.js';
import { figuresOf } from '../../base/statistics.js';
import { plural } from '../../base/text/quantity.js';
import { TrtforgeError } from '../../errors.js';
import { type EventListener, ignoreEvents, inPhase } from '../../events.js';
import { type Dtype, dtypes, elementCount } from '../../formats/tensor/dtype.js';
import { npyFileName, writeNpy } from '../../formats/tensor/npy.js';
import { writeNpz } from '../../formats/tensor/npz.js';
import { type NamedTensors, numbersOf, type Tensor } from '../../formats/tensor/tensor.js';
import { type Passport, readPassport } from '../identity/passport.js';
import { changedModel } from '../plan/context-model.js';
import { readPlanHeader } from '../plan/header.js';
import type { BackEnd, OpenedEngine, OpenedModel, RepeatedRun } from '../runtime/back-end.js';
import { chooseBackEnd, openSession } from '../runtime/open-session.js';
import { callShapeOf, chooseProfile } from '../runtime/tensorrt/choose-profile.js';
import type { EngineBinding } from '../runtime/tensorrt/engine-interface.js';
import { describedInput } from './drawn-inputs.js';
import {
  checkSources,
  type GatheredInput,
  gatherForModel,
  gatherInputs,
  type KnownInput,
  shapesOf,
  tensorsOf,
} from './gather-inputs.js';
import { runGuessed } from './guessed-run.js';
import type { RunRequest } from './options.js';
import type { RunResult } from './result.js';

export const runContextOptions = {
  ...contextOptions,
  /** Default: every back end there is. */
  backEnds: optional(is.list<BackEnd>()),
};

export interface RunContext extends OptionsOf<typeof runContextOptions> {}

/**
 * Runs a TensorRT engine, or an ONNX model on ONNX Runtime, once or several times, each in a process of its own, and writes its outputs.
 * What is wrong with the inputs whatever machine this is comes first. Throws TF_USAGE for options that the back end does not honour, and what opening, reading inputs, running and writing throw.
 */
export async function runFile(request: RunRequest, context: RunContext = {}): Promise<RunResult> {
  const given = request.sources.map((source) => (source.kind === 'random' ? undefined : source.path));
  return protectingInputs([request.file, ...given], () =>
    runOpened(
      request,
      context,
      (passport) => checkSources(request, inputsInPassport(passport)),
      async (session, runs) => {
        checkOutputPlace(request.output, session.outputs.length);
        const { outputs, inputs, ...ran } =
          session.kind === 'engine'
            ? await runEngine(session, request, runs)
            : await runModel(session, request, runs);
        const described = inputs.map(({ tensor, ...input }) =>
          describedInput({ ...input, dtype: tensor.dtype, shape: tensor.shape }),
        );
        return { ...ran, inputs: described, outputs: writeOutputs(outputs, request.output) };
      },
    ),
  );
}

/** What is known of the runs of an opened session. */
interface RunFacts {
  readonly inputs: RunResult['inputs'];
  readonly outputs: RunResult['outputs'];
  readonly profile: number | null;
  readonly openMs: number;
  readonly ms: readonly number[];
}

/** Opens a file, runs it as `work` does, and describes that. `check` is for what is wrong before anything is loaded. Throws what `runFile` throws of the file. */
export async function runOpened(
  request: Omit<RunRequest, 'sources'>,
  context: RunContext,
  check: (passport: Passport | null) => void,
  work: (session: OpenedEngine | OpenedModel, runs: Runs) => Promise<RunFacts>,
): Promise<RunResult> {
  const warnings: string[] = [];
  const emit: EventListener = (event) => {
    if (event.type === 'log' && event.severity === 'warning' && event.source === 'trtforge')
      warnings.push(event.message);
    (context.emit ?? ignoreEvents)(event);
  };
  const { takes } = chooseBackEnd(request.file, request, context.backEnds);
  checkIterations(request);
  const passport = takes === 'engine' ? passportHere(request.file) : null;
  check(passport);
  const warn = (message: string) => emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
  const changed = passport && (await changedModel(request.file, passport, context));
  if (changed !== null) warn(changed);
  const started = performance.now();
  return closing(
    await inPhase('load', emit, () =>
      openSession(request.file, request, { ...context, emit }, context.backEnds),
    ),
    async (session) => {
      const ran = await work(session, { ...context, emit, started });
      const facts = await session.facts();
      const { cudaGraphFallbacks: fallbacks, weightBudgetBytes, warnings: more, onnxRuntime } = facts;
      for (const message of more) warn(message);
      return {
        schema: 'trtforge.run/1',
        file: request.file,
        kind: session.kind,
        backend: session.backend,
        ...(onnxRuntime === null ? {} : { onnxRuntime }),
        profile: ran.profile,
        cudaGraph:
          fallbacks === null ? null : { asked: request.cudaGraph ?? 'auto', fallbacks: [...fallbacks] },
        ...(weightBudgetBytes === null ? {} : { weightBudgetBytes }),
        seed: request.seed ?? 0,
        inputs: ran.inputs,
        outputs: ran.outputs,
        times: timesOf(ran),
        warnings,
        repeat: null,
      };
    },
  );
}

/** The context of the runs of an opened session. */
export interface Runs extends RunContext {
  /** When opening began, for the time it took. */
  readonly started: number;
}

interface Ran extends RepeatedRun {
  readonly inputs: readonly GatheredInput[];
  readonly profile: number | null;
  readonly openMs: number;
}

async function runEngine(
  session: OpenedEngine,
  request: RunRequest,
  { emit, signal, started }: Runs,
): Promise<Ran> {
  const inputs = gatherInputs(session.inputs, request);
  const tensors = tensorsOf(inputs);
  const profile = chooseProfile(session.inputs, callShapeOf(session.inputs, tensors), request.profile);
  const openMs = performance.now() - started;
  const options = {
    profile,
    iterations: request.iterations ?? 1,
    signal,
  };
  const ran = await inPhase('run', emit, () => session.runRepeatedly(tensors, options));
  return { ...ran, inputs, profile, openMs };
}

async function runModel(
  session: OpenedModel,
  request: RunRequest,
  { emit, signal, started }: Runs,
): Promise<Ran> {
  const plan = (attempt: number) => {
    const planned = gatherForModel(session.inputs, request, attempt);
    return { planned, inputs: shapesOf(planned) };
  };
  const options = { iterations: request.iterations ?? 1, signal };
  let openMs = 0;
  const { planned: inputs, result } = await inPhase('run', emit, () =>
    runGuessed(request.file, plan, (planned) => {
      const tensors = tensorsOf(planned);
      openMs ||= performance.now() - started;
      return session.runRepeatedly(tensors, options);
    }),
  );
  return { ...result, inputs, profile: null, openMs };
}

function checkIterations({ iterations = 1 }: Pick<RunRequest, 'iterations'>): void {
  if (Number.isSafeInteger(iterations) && iterations >= 1) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${iterations} iterations cannot be run: it takes a whole number from 1.`,
  );
}

function timesOf({ openMs, ms }: RunFacts): RunResult['times'] {
  const [first = 0, ...rest] = ms;
  const { min, mean, p50, max } = figuresOf(rest);
  return {
    openMs,
    iterations: ms.length,
    first,
    rest: rest.length === 0 ? null : { min, median: p50, mean, max },
  };
}

type RunOutput = RunResult['outputs'][number];

/** Throws TF_USAGE for a place that looks like a file and cannot hold all outputs: it would become a folder of that name. */
function checkOutputPlace(place: string | undefined, outputs: number): void {
  if (place === undefined || !/\.(npy|json|safetensors)$/i.test(place)) return;
  if (statIfThere(place)?.isDirectory() === true || (outputs === 1 && isNpy(place))) return;
  throw new TrtforgeError('TF_USAGE', `${plural(outputs, 'output')} cannot be written to ${place}.`, {
    remedy:
      'Pass a folder (one npy for each output) or a file that ends in .npz; a single output may be a .npy.',
  });
}

const isNpy = (place: string): boolean => /\.npy$/i.test(place) && statIfThere(place)?.isDirectory() !== true;

/** Writes outputs as one npz, a single one as npy, or one npy each into a folder; returns what is in each. */
export function writeOutputs(tensors: NamedTensors, place: string | undefined): RunOutput[] {
  const isArchive = /\.npz$/i.test(place ?? '');
  if (place !== undefined && isArchive) writeNpz(place, tensors);
  return [...tensors].map(([name, tensor]) => {
    const file =
      place === undefined ? null : isArchive || isNpy(place) ? place : join(place, npyFileName(name));
    if (file !== null && !isArchive) writeNpy(file, tensor);
    return { ...describeTensor(name, tensor), file };
  });
}

function describeTensor(name: string, tensor: Tensor): Omit<RunOutput, 'file'> {
  const { dtype, shape } = tensor;
  const numbers = numbersOf(tensor, name);
  let [min, max, sum, nan, infinite] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0, 0];
  for (let at = 0; at < numbers.length; at++) {
    const value = numbers[at]!;
    if (value - value === 0) {
      if (value < min) min = value;
      if (value > max) max = value;
      sum += value;
    } else if (Number.isNaN(value)) nan++;
    else infinite++;
  }
  const finite = numbers.length - nan - infinite;
  return {
    name,
    dtype,
    shape: [...shape],
    elements: elementCount(shape),
    min: finite === 0 ? null : min,
    max: finite === 0 ? null : max,
    mean: finite === 0 ? null : sum / finite,
    nan,
    infinite,
  };
}

/** The inputs of an engine; null where it has no passport, or one without inputs. */
export function inputsInPassport(passport: Passport | null): readonly KnownInput[] | null {
  if (passport === null) return null;
  const { plan } = passport;
  const known = plan.inputs.flatMap(({ name, dtype, shape }) =>
    dtype in dtypes ? [{ name, dtype: dtype as Dtype, shape }] : [],
  );
  return known.length > 0 && known.length === plan.inputs.length ? known : null;
}

/** The same with their profiles, as the engine itself states them; null also where a profile is not known of every input. */
export function bindingsInPassport(passport: Passport | null): readonly EngineBinding[] | null {
  const { profiles = [] } = passport?.identity.document.recipe ?? {};
  const bindings = (inputsInPassport(passport) ?? []).map(({ name, dtype, shape }): EngineBinding | null => {
    if (shape === null) return null;
    const sizes = shape.flatMap((size) => (typeof size === 'number' ? [size] : []));
    const fixed = sizes.length === shape.length ? { min: sizes, opt: sizes, max: sizes } : null;
    // Without dynamic inputs an engine has one profile, which the recipe leaves out.
    const ranges = (profiles.length === 0 ? [{}] : profiles).map(({ [name]: range = fixed }) => range);
    const known = ranges.filter((range) => range !== null);
    if (known.length < ranges.length) return null;
    const hostValues = profiles.some(({ [name]: range }) => range?.values === true);
    const open = shape.map((size) => (typeof size === 'number' ? size : null));
    return { name, dtype, shape: open, hostValues, profiles: known };
  });
  const known = bindings.filter((binding) => binding !== null);
  return known.length > 0 && known.length === bindings.length ? known : null;
}

/** The passport of a plan as large as this; null where there is none. */
export function passportHere(planPath: string): Passport | null {
  try {
    const passport = readPassport(planPath);
    return passport.plan.bytes === readPlanHeader(planPath).planBytes ? passport : null;
  } catch (error) {
    // Loading the engine reports what is wrong with it.
    if (error instanceof TrtforgeError) return null;
    throw error;
  }
}
