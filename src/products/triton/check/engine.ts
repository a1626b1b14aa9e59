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

export function engineOf({ file, passport }: ServedPlan, contract: readonly StatePair[]): Engine | null {
  if (passport === null) return null;
  const { profiles } = passport.identity.document.recipe;
  const known = Object.entries(passport.knownAnswer?.state ?? {}).map(([input, output]) => ({
    input,
    output,
  }));
  const inputs = new Set(contract.map(({ input }) => input));
  return {
    file,
    inputs: passport.plan.inputs,
    outputs: passport.plan.outputs,
    profiles: profiles.length === 0 ? [{}] : profiles,
    states: [...contract, ...known.filter(({ input }) => !inputs.has(input))],
  };
}

/** The indexes of the profiles that the configuration serves, as far as the engine has them; without any it is the first. */
export function servedProfiles(config: ModelConfig, engine: Engine): readonly number[] {
  const groups = config.instance_group ?? [{}];
  const named = groups.flatMap(({ profile = [] }) => (profile.length === 0 ? ['0'] : profile)).map(Number);
  return [...new Set(named)].filter((index) => engine.profiles[index] !== undefined);
}

/** Sizes of one axis of an input in a profile; a fixed axis has its size as both ends, undefined: nothing states it. */
export function rangeOf(
  engine: Engine,
  profile: number,
  { name, shape }: EngineTensor,
  axis: number,
): { readonly min: number; readonly max: number } | undefined {
  const range = engine.profiles[profile]?.[name];
  const [min, max] =
    range === undefined ? [shape?.[axis], shape?.[axis]] : [range.min[axis], range.max[axis]];
  return typeof min === 'number' && typeof max === 'number' ? { min, max } : undefined;
}

/** Whether an input's values, and not its dimensions, are what profiles range over. */
export const isShapeTensor = (engine: Engine, name: string): boolean =>
  engine.profiles.some((profile) => profile[name]?.values === true);

/** The batches that a profile takes: those that every input takes on its first axis. */
export function batchesOf(engine: Engine, profile: number): { readonly min: number; readonly max: number } {
  const ranges = engine.inputs.flatMap((input) => rangeOf(engine, profile, input, 0) ?? []);
  return {
    min: Math.max(1, ...ranges.map(({ min }) => min)),
    max: Math.min(Number.POSITIVE_INFINITY, ...ranges.map(({ max }) => max)),
  };
}
