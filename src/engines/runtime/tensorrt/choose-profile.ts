import { TrtforgeError } from '../../../errors.js';
import { elementCount } from '../../../formats/tensor/dtype.js';
import { list } from '../session-inputs.js';
import type { CallShape } from './engine-inputs.js';
import type { BindingRange, EngineBinding } from './engine-interface.js';

/**
 * The profile to run in: the one asked for, or of those that take the shapes the one with the smallest maximum (fewest elements in its largest inputs),
 * which is tuned nearest to them; of equals the first.
 * Throws TF_PROFILE_MISFIT naming the tensor, what was given and the valid range of every profile, TF_SESSION_INPUT for a profile that is not there.
 */
export function chooseProfile(inputs: readonly EngineBinding[], call: CallShape, asked?: number): number {
  const count = Math.max(1, ...inputs.map(({ profiles }) => profiles.length));
  if (asked !== undefined && !(Number.isInteger(asked) && asked >= 0 && asked < count)) {
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `There is no profile ${asked}; the engine has ${count === 1 ? 'profile 0 alone' : `profiles 0 to ${count - 1}`}.`,
    );
  }
  const candidates = asked === undefined ? Array.from({ length: count }, (_, at) => at) : [asked];
  const taking = candidates.filter((profile) => misfit(inputs, call, profile) === undefined);
  const [chosen] = taking
    .map((profile) => ({ profile, size: largestElements(inputs, profile) }))
    .sort((a, b) => a.size - b.size);
  if (chosen !== undefined) return chosen.profile;
  throw outside(inputs, call, candidates);
}

/** The first input that a profile does not take; undefined when it takes all. */
function misfit(inputs: readonly EngineBinding[], call: CallShape, profile: number): number | undefined {
  const at = inputs.findIndex((input, index) => {
    const range = input.profiles[profile];
    const given = call.values[index] ?? call.dims[index] ?? [];
    return range !== undefined && !within(given, range);
  });
  return at < 0 ? undefined : at;
}

const within = (given: readonly number[], { min, max }: BindingRange): boolean =>
  given.length === min.length &&
  given.every((size, at) => size >= (min[at] ?? 0) && size <= (max[at] ?? Number.POSITIVE_INFINITY));

const largestElements = (inputs: readonly EngineBinding[], profile: number): number =>
  inputs.reduce((sum, input) => {
    const range = input.profiles[profile];
    return range === undefined || input.hostValues ? sum : sum + elementCount(range.max);
  }, 0);

function outside(
  inputs: readonly EngineBinding[],
  call: CallShape,
  candidates: readonly number[],
): TrtforgeError {
  const culprits = [...new Set(candidates.map((profile) => misfit(inputs, call, profile) ?? 0))];
  const sentences = culprits.map((index) => {
    const input = inputs[index]!;
    const values = call.values[index];
    const given =
      values == null ? `has the shape ${list(call.dims[index] ?? [])}` : `has the values ${list(values)}`;
    const ranges = candidates.map((profile) => `profile ${profile} takes ${rangeText(input, profile)}`);
    return `${input.name} ${given}, but ${ranges.join(', ')}`;
  });
  const joint = culprits.length > 1 ? 'No profile takes all inputs together: ' : '';
  return new TrtforgeError('TF_PROFILE_MISFIT', `${joint}${sentences.join('; ')}.`, {
    details: {
      inputs: inputs.map(({ name, profiles }, at) => ({
        name,
        shape: call.dims[at],
        values: call.values[at],
        profiles,
      })),
    },
  });
}

/** `[1..32, 64]`. */
function rangeText({ profiles }: Pick<EngineBinding, 'profiles'>, profile: number): string {
  const range = profiles[profile];
  if (range === undefined) return 'anything';
  return list(range.min.map((min, at) => (min === range.max[at] ? min : `${min}..${range.max[at]}`)));
}
