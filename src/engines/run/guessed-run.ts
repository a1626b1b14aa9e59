import { TrtforgeError } from '../../errors.js';
import { MOST_TRIES } from '../../formats/onnx/open-dimensions.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import { shapesOption } from '../../formats/tensor/shape-text.js';

/** Inputs of a run, some with guessed sizes. */
interface GuessedInput {
  readonly name: string;
  readonly shape: readonly number[];
  readonly guessedAxes?: readonly number[];
}

/** Elements of all inputs together; a guess beyond that is not tried. */
const LARGEST_GUESS = 2 ** 25;

/**
 * Runs a model; where it fails and sizes were guessed, again with the next guess, MOST_TRIES times at most. `plan` returns the inputs of an attempt, counted
 * from 0. Throws what the run throws, and TF_ONNXRUNTIME_FAILED with every shape that was tried when none runs.
 */
export async function runGuessed<P, R>(
  path: string,
  plan: (attempt: number) => { readonly planned: P; readonly inputs: readonly GuessedInput[] },
  run: (planned: P) => Promise<R>,
): Promise<{ readonly planned: P; readonly result: R }> {
  const tried = new Set<string>();
  let last: TrtforgeError | undefined;
  for (let attempt = 0; attempt < MOST_TRIES; attempt++) {
    const { planned, inputs } = plan(attempt);
    const guessed = inputs.filter(({ guessedAxes }) => guessedAxes !== undefined);
    const shapes = shapesOption(guessed);
    const elements = inputs.reduce((sum, { shape }) => sum + elementCount(shape), 0);
    if (tried.has(shapes) || (attempt > 0 && elements > LARGEST_GUESS)) continue;
    try {
      return { planned, result: await run(planned) };
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_FAILED') throw error;
      if (guessed.length === 0) throw error;
      tried.add(shapes);
      last = error;
    }
  }
  const [likeliest] = tried;
  throw new TrtforgeError(
    'TF_ONNXRUNTIME_FAILED',
    `${path} runs with none of the ${tried.size} sizes that were guessed for its open dimensions. ${last?.message ?? ''}`,
    {
      cause: last,
      remedy: `Pass shapes that the model takes, written as ${likeliest}, or tensors: --inputs NAME=@FILE.npy. None of these runs: ${[...tried].join('; ')}.`,
      details: { tried: [...tried] },
    },
  );
}

/** One line for people: what was guessed, and the option that replaces the guess. */
export function guessLine(inputs: readonly GuessedInput[]): string | null {
  const guessed = inputs.filter(({ guessedAxes }) => guessedAxes !== undefined);
  if (guessed.length === 0) return null;
  const axes = guessed.map(({ name, guessedAxes = [] }) => `${name} axis ${guessedAxes.join(', ')}`);
  return `sizes were guessed (${axes.join('; ')}); to choose them: ${shapesOption(guessed)}`;
}
