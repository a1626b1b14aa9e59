import { shapesOption } from '../../base/options/readers.js';
import { TrtforgeError } from '../../errors.js';
import { viewModel } from '../../formats/onnx/model.js';
import { isPlaceholder, MOST_TRIES } from '../../formats/onnx/open-dimensions.js';
import { inferShapes } from '../../formats/onnx/shapes/infer.js';
import { symbolsOf } from '../../formats/onnx/shapes/size.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import type { Session } from '../runtime/session.js';

/** Inputs of a run, some with guessed sizes. */
interface GuessedInput {
  readonly name: string;
  readonly shape: readonly number[];
  readonly guessedAxes?: readonly number[];
  /** Of inputs that are drawn: their type, and from what. */
  readonly dtype?: string;
  readonly from?: string;
  readonly range?: unknown;
}

/** Elements of all inputs together; a guess beyond that is not tried. */
const LARGEST_GUESS = 2 ** 25;

/** Single numbers that are drawn and are no measurements: a rate or a switch may decide what runs. */
export const drawnSwitches = <I extends GuessedInput>(inputs: readonly I[]): readonly I[] =>
  inputs.filter(
    ({ dtype = '', range, shape }) =>
      range !== undefined && elementCount(shape) === 1 && /^u?int|bool/.test(dtype),
  );

/**
 * Runs a model; where it fails and sizes were guessed, again with the next guess, MOST_TRIES times at most, each with two batches. `plan` returns the
 * inputs of an attempt, counted from 0. Where `missing` finds something missing in a result, the attempt with the least is returned. Throws what the run throws,
 * and TF_ONNXRUNTIME_FAILED with every shape that was tried when none runs.
 */
export async function runGuessed<P, R>(
  path: string,
  plan: (attempt: number) => { readonly planned: P; readonly inputs: readonly GuessedInput[] },
  run: (planned: P) => Promise<R>,
  missing: (result: R) => number = () => 0,
): Promise<{ readonly planned: P; readonly result: R }> {
  const tried = new Set<string>();
  let best: { readonly planned: P; readonly result: R; readonly lacks: number } | undefined;
  let last: TrtforgeError | undefined;
  let latest: readonly GuessedInput[] = [];
  for (let attempt = 0; attempt < 2 * MOST_TRIES; attempt++) {
    const { planned, inputs } = plan(attempt);
    const guessed = inputs.filter(({ guessedAxes }) => guessedAxes !== undefined);
    const shapes = shapesOption(guessed);
    const elements = inputs.reduce((sum, { shape }) => sum + elementCount(shape), 0);
    if (tried.has(shapes) || (attempt > 0 && elements > LARGEST_GUESS)) continue;
    tried.add(shapes);
    latest = inputs;
    try {
      const result = await run(planned);
      const lacks = missing(result);
      if (lacks < (best?.lacks ?? Number.POSITIVE_INFINITY)) best = { planned, result, lacks };
      if (lacks === 0 || guessed.length === 0) break;
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_FAILED') throw error;
      last = error;
      if (guessed.length === 0) throw withSwitches(error, inputs);
    }
  }
  if (best !== undefined) return best;
  const [likeliest] = tried;
  const pass = switchesText(latest) ?? 'tensors: --inputs NAME=@FILE.npy';
  throw new TrtforgeError(
    'TF_ONNXRUNTIME_FAILED',
    `${path} runs with none of the ${tried.size} sizes that were guessed for its open dimensions. ${last?.message ?? ''}`,
    {
      cause: last,
      remedy: `Pass shapes that the model takes, written as ${likeliest}, or ${pass}. None of these runs: ${[...tried].join('; ')}.`,
      details: { tried: [...tried] },
    },
  );
}

const switchesText = (inputs: readonly GuessedInput[]): string | null => {
  const drawn = drawnSwitches(inputs).map(
    ({ name, from }) => `${name} (drawn: ${from}): --inputs ${name}=@${name}.npy`,
  );
  return drawn.length === 0 ? null : `the value of ${drawn.join(', ')}`;
};

function withSwitches(error: TrtforgeError, inputs: readonly GuessedInput[]): TrtforgeError {
  const text = switchesText(inputs);
  const { code, message, details, remedy } = error;
  return text === null
    ? error
    : new TrtforgeError(code, message, { cause: error, remedy: `Pass ${text}. ${remedy}`, details });
}

/** One line for people: what was guessed, and the option that replaces the guess. */
export function guessLine(inputs: readonly GuessedInput[]): string | null {
  const guessed = inputs.filter(({ guessedAxes }) => guessedAxes !== undefined);
  if (guessed.length === 0) return null;
  const axes = guessed.map(({ name, guessedAxes = [] }) => `${name} axis ${guessedAxes.join(', ')}`);
  return `sizes were guessed (${axes.join('; ')}); to choose them: ${shapesOption(guessed)}`;
}

/**
 * Which output of a run has another size than the model declares of it by the name of an input's dimension, in one sentence; undefined where none has. Where the graph
 * computes the size from that dimension (frames after subsampling), the name is the exporter's mistake and nothing is fixed.
 */
export function declaredOtherwise(
  path: string,
  declared: Pick<Session, 'inputs' | 'outputs'>,
  inputs: NamedTensors,
  outputs: NamedTensors,
): string | undefined {
  const sizes = new Map<string, number | undefined>();
  for (const { name, shape } of declared.inputs)
    for (const [axis, dimension] of (shape ?? []).entries())
      if (typeof dimension === 'string' && !isPlaceholder(dimension))
        sizes.set(dimension, inputs.get(name)?.shape[axis]);
  for (const { name, shape } of declared.outputs)
    for (const [axis, dimension] of (shape ?? []).entries()) {
      const ran = outputs.get(name)?.shape ?? [];
      const wanted = sizes.get(`${dimension}`) ?? ran[axis];
      if (wanted !== ran[axis] && isFixed(path, name, axis, `${dimension}`))
        return `Output "${name}" is declared as [${shape!.map((size) => size ?? '?').join(', ')}] and is [${ran.join(', ')}] where ${dimension} is ${wanted}`;
    }
  return undefined;
}

/** Throws TF_OUTPUT_SIZE. */
export function assertAsDeclared(...[path, ...run]: Parameters<typeof declaredOtherwise>): void {
  const fault = declaredOtherwise(path, ...run);
  if (fault !== undefined) throw new TrtforgeError('TF_OUTPUT_SIZE', `${path}: ${fault}.`);
}

/** Whether the inputs decide the size of an output's axis without that dimension. */
const isFixed = (path: string, output: string, axis: number, dimension: string): boolean =>
  viewModel(path, (model) => {
    const { nodes, openSizes } = inferShapes(model);
    const producer = model.proto.graph!.node.find((node) => node.output.includes(output));
    const size = producer && nodes.get(producer)?.shapes[producer.output.indexOf(output)]?.[axis];
    const names = size === undefined ? [dimension] : symbolsOf(size);
    return names.every((name) => name !== dimension && openSizes.has(name));
  });
