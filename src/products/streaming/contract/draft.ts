import type { Contract } from '../../../formats/contract/contract.js';
import { isBounded, openAxis, resolveContract } from '../../../formats/contract/resolve.js';
import type { ModelBindings } from './bindings.js';

/**
 * Drafts a contract from the names of a model or session: inputs and outputs as they are, state by names (`cache` and `cache_out`, `h_in` and `h_out`,
 * `past_key_values.0.key` and `present.0.key`), lengths by name and type. Lengths of state are bounded by its capacity; what a draft cannot know (the
 * rule, the schedule beyond `sizes`, tolerances) is left open for its owner to fill in.
 */
export function contractFromModel(
  name: string,
  model: ModelBindings,
  sizes: readonly number[] = [],
): Contract {
  const plain = ({ name: binding, dtype, shape }: ModelBindings['inputs'][number]) => ({
    name: binding,
    dtype,
    shape,
  });
  const drafted = resolveContract({
    ...{ name, origin: { path: null, form: 'draft' }, statedSizes: sizes },
    ...{ inputs: model.inputs.map(plain), outputs: model.outputs.map(plain) },
  });
  const capacity = drafted.state.find(({ validLength }) => validLength !== null)?.capacity ?? null;
  const { stateOut, stateIn } = drafted.lengths;
  const withSchedule = { ...drafted, profiles: profilesOf(model) };
  if (stateOut === null || capacity === null) return withSchedule;
  return {
    ...withSchedule,
    assertions: [
      ...drafted.assertions,
      isBounded(stateOut, capacity),
      {
        id: `${stateOut}-grows`,
        tensor: stateOut,
        kind: 'monotonic',
        than: stateIn,
        until: capacity,
        sentence: `${stateOut} never shrinks until it is ${capacity}.`,
      },
    ],
  };
}

/** Profiles of an engine, as the contract keeps them; opt is not known to bindings and stands at max. */
function profilesOf({ inputs }: ModelBindings): Contract['profiles'] {
  const count = Math.max(0, ...inputs.map(({ profiles }) => profiles?.length ?? 0));
  const dynamic = inputs.filter((input) => openAxis(input) !== null || (input.shape ?? []).includes(null));
  return Array.from({ length: count }, (_, at) => ({
    name: `profile ${at}`,
    ranges: Object.fromEntries(
      dynamic.flatMap(({ name, profiles }) => {
        const range = profiles?.[at];
        if (range === undefined) return [];
        return [
          [
            name,
            range.min.map((min, axis) => ({ min, opt: range.max[axis] ?? min, max: range.max[axis] ?? min })),
          ],
        ];
      }),
    ),
  }));
}
