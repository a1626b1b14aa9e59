import type { Passport } from '../../engines/identity/passport.js';
import type { Profile } from '../../engines/profiles/profile.js';
import type { StatePair } from '../../formats/contract/contract.js';
import { statePair } from '../../formats/contract/state.js';

export type EngineTensor = Passport['plan']['inputs'][number];

/** At least one: an engine of fixed shapes has one profile without ranges. */
export function profilesOf({ identity }: Passport): readonly Profile[] {
  const { profiles } = identity.document.recipe;
  return profiles.length === 0 ? [{}] : profiles;
}

/** The states that the known answer of an engine feeds back. */
export const knownStates = ({ knownAnswer }: Passport): readonly StatePair[] =>
  Object.entries(knownAnswer?.state ?? {}).map(([input, output]) => statePair(input, output));

/** The shape with -1 for open axes, as Triton writes them; null without a rank. */
export const openShape = ({ shape }: EngineTensor): readonly number[] | null =>
  shape?.map((size) => size ?? -1) ?? null;

/** Whether an input's values, and not its dimensions, are what profiles range over. */
export const isShapeTensor = (profiles: readonly Profile[], name: string): boolean =>
  profiles.some((profile) => profile[name]?.values === true);

/** Sizes of one axis in a profile; undefined where nothing states them. */
function rangeOf(profile: Profile, { name, shape }: EngineTensor, axis: number) {
  const { [name]: range } = profile;
  const [min, max] =
    range === undefined ? [shape?.[axis], shape?.[axis]] : [range.min[axis], range.max[axis]];
  return typeof min === 'number' && typeof max === 'number' ? { min, max } : undefined;
}

/** Whether a profile takes an input of these sizes; -1 fits. */
export const isTaken = (profile: Profile, tensor: EngineTensor, sizes: readonly number[]): boolean =>
  profile[tensor.name]?.values === true ||
  sizes.every((size, axis) => {
    const range = rangeOf(profile, tensor, axis);
    return size === -1 || range === undefined || (size >= range.min && size <= range.max);
  });

interface Batches {
  readonly min: number;
  readonly max: number;
}

/** The batches that a profile takes: those that every input takes on its first axis. */
export function batchesOf(profile: Profile, inputs: readonly EngineTensor[]): Batches {
  const ranges = inputs.flatMap((input) => rangeOf(profile, input, 0) ?? []);
  const [least, most] = [ranges.map(({ min }) => min), ranges.map(({ max }) => max)];
  return { min: Math.max(1, ...least), max: Math.min(Number.POSITIVE_INFINITY, ...most) };
}

/** The smallest batch that every engine takes with one of its profiles; undefined where there is none up to `most`. */
export const leastBatch = (engines: readonly (readonly Batches[])[], most: number): number | undefined =>
  engines
    .flatMap((profiles) => profiles.map(({ min }) => min))
    .sort((a, b) => a - b)
    .find(
      (size) =>
        size <= most &&
        engines.every((profiles) => profiles.some(({ min, max }) => size >= min && size <= max)),
    );
