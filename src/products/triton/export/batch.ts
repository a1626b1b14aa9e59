import type { Passport } from '../../../engines/identity/passport-file.js';
import type { Profile } from '../../../engines/profiles/profile.js';
import type { StateContract } from './contract.js';
import type { EngineTensor, ServedState } from './served-model.js';

/** How Triton may put requests together. */
export interface BatchFacts {
  /** 0: never; shapes are complete then, else they lack their first axis. */
  readonly maxBatch: number;
  /** The batches that engines were tuned for, ascending. */
  readonly preferred: readonly number[];
  /** Why it is 0, completing "since …"; null where it is not, and where every shape is fixed. */
  readonly why: string | null;
}

interface BatchSource {
  readonly states: readonly ServedState[];
  readonly profiles: readonly (readonly Profile[])[];
  readonly contract: StateContract | undefined;
}

/** The largest batch that every engine takes, where the first axis of every tensor is open. */
export function batchOf(plan: Passport['plan'], { states, profiles, contract }: BatchSource): BatchFacts {
  const never = (why: string | null): BatchFacts => ({ maxBatch: 0, preferred: [], why });
  if (!plan.inputs.some(({ shape }) => shape!.includes(null))) return never(null);
  if (profiles.some(({ length }) => length === 0)) return never('an engine has no profile for its open axes');
  const shapeInput = plan.inputs.find(({ name }) => profiles[0]?.[0]?.[name]?.values);
  if (shapeInput !== undefined) return never(`${shapeInput.name} is a shape tensor`);
  const fixed = [...plan.inputs, ...plan.outputs].find(({ shape }) => shape![0] !== null);
  const isState = states.some(({ input, output }) => fixed === input || fixed === output);
  if (fixed !== undefined)
    return never(
      isState
        ? `the batch of state ${fixed.name}, ${shapeText(fixed)}, is not its first axis: export the model with [B, …] states to batch sequences`
        : `the first axis of ${fixed.name}, ${shapeText(fixed)}, is not an open batch`,
    );
  const flat = states.find(({ input }) => input.shape!.length === 1);
  // A state has no `reshape`, and core allocates nothing for one without dimensions (`GetElementCount`).
  if (flat !== undefined)
    return never(
      `state ${flat.input.name} is [B], and Triton cannot initialize a state without a dimension beside the batch: export it as [B, 1] to batch sequences`,
    );
  const symbols = new Set(
    contract?.inputs.flatMap(({ shape }) => (typeof shape?.[0] === 'string' ? [shape[0]] : [])),
  );
  if (symbols.size > 1) return never(`the contract names different first axes: ${[...symbols].join(', ')}`);
  const largest = profiles.map((own) =>
    Math.max(...own.map((profile) => Math.min(...Object.values(profile).map(({ max }) => max[0] ?? 0)))),
  );
  const maxBatch = Math.min(...largest);
  const tuned = profiles.flat().flatMap((profile) => Object.values(profile).map(({ opt }) => opt[0] ?? 0));
  const preferred = [...new Set(tuned)].filter((size) => size > 1 && size <= maxBatch);
  return { maxBatch, preferred: preferred.sort((a, b) => a - b), why: null };
}

const shapeText = ({ shape }: EngineTensor): string => `[${shape!.map((size) => size ?? 'open').join(', ')}]`;
