import type { Passport } from '../../../engines/identity/passport.js';
import type { ModelConfig } from '../model-config.js';
import type { ServedPlan, StatePair } from './repository.js';

/** What a passport states of the engine that Triton loads. */
export interface Engine {
  /** `det/1/model.plan` */
  readonly file: string;
  readonly inputs: Passport['plan']['inputs'];
  readonly outputs: Passport['plan']['outputs'];
  /** At least one: an engine of fixed shapes has one profile without ranges. */
  readonly profiles: Passport['identity']['document']['recipe']['profiles'];
  readonly states: readonly StatePair[];
}

export type EngineTensor = Engine['inputs'][number];

/** The states are those of the contract, and what the known answer feeds back besides. */
export function engineOf({ file, passport }: ServedPlan, contract: readonly StatePair[]): Engine | null {
  if (passport === null) return null;
  const { plan, identity, knownAnswer } = passport;
  const { profiles } = identity.document.recipe;
  const fed = Object.entries(knownAnswer?.state ?? {}).map(([input, output]) => ({ input, output }));
  const states = [...contract, ...fed.filter(({ input }) => contract.every((pair) => pair.input !== input))];
  const { inputs, outputs } = plan;
  return { file, inputs, outputs, states, profiles: profiles.length === 0 ? [{}] : profiles };
}

/** The profiles that the configuration serves, as far as the engine has them; without any it is the first. */
export function servedProfiles(
  { instance_group: groups = [{}] }: ModelConfig,
  engine: Engine,
): readonly number[] {
  const named = groups.flatMap(({ profile = [] }) => (profile.length === 0 ? ['0'] : profile)).map(Number);
  return [...new Set(named)].filter((index) => engine.profiles[index] !== undefined);
}

/** Sizes of one axis in a profile; undefined where nothing states them. */
function rangeOf(engine: Engine, profile: number, { name, shape }: EngineTensor, axis: number) {
  const range = engine.profiles[profile]?.[name];
  const [min, max] =
    range === undefined ? [shape?.[axis], shape?.[axis]] : [range.min[axis], range.max[axis]];
  return typeof min === 'number' && typeof max === 'number' ? { min, max } : undefined;
}

/** Whether a profile takes an input of these sizes; -1 fits. */
export const isTaken = (
  engine: Engine,
  profile: number,
  tensor: EngineTensor,
  sizes: readonly number[],
): boolean =>
  sizes.every((size, axis) => {
    const range = rangeOf(engine, profile, tensor, axis);
    return size === -1 || range === undefined || (size >= range.min && size <= range.max);
  });

/** Whether an input's values, and not its dimensions, are what profiles range over. */
export const isShapeTensor = (engine: Engine, name: string): boolean =>
  engine.profiles.some((profile) => profile[name]?.values === true);

/** The batches that a profile takes: those that every input takes on its first axis. */
export function batchesOf(engine: Engine, profile: number): { readonly min: number; readonly max: number } {
  const ranges = engine.inputs.flatMap((input) => rangeOf(engine, profile, input, 0) ?? []);
  const [least, most] = [ranges.map(({ min }) => min), ranges.map(({ max }) => max)];
  return { min: Math.max(1, ...least), max: Math.min(Number.POSITIVE_INFINITY, ...most) };
}
