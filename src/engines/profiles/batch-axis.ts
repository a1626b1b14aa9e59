import type { Named } from '../../formats/contract/state-pairs.js';
import { isOtherThanBatch, openDimensions } from '../../formats/onnx/open-dimensions.js';
import type { Passport } from '../identity/passport.js';
import type { Profile } from './profile.js';

/** The facts that state the meaning of the open axes of a model or an engine. */
export interface NamedAxes {
  readonly inputs: readonly Named[];
  readonly outputs: readonly Named[];
  readonly profiles?: readonly Profile[];
  readonly knownAnswer?: Passport['knownAnswer'];
}

/** The same of an engine, with the symbols of its model where the passport has them, else those that are `stated` of its inputs. */
export function axesOf(
  { plan, identity, knownAnswer }: Passport,
  stated: readonly Pick<Named, 'name' | 'shape'>[] = [],
): NamedAxes {
  const named = ({ name, dtype, shape, symbols }: Passport['plan']['inputs'][number]): Named => {
    const others = stated.find((each) => each.name === name)?.shape;
    const symbolOf = (axis: number) => symbols?.[axis] ?? others?.[axis] ?? null;
    return { name, dtype, shape: shape?.map((size, axis) => size ?? symbolOf(axis)) ?? null };
  };
  const { profiles } = identity.document.recipe;
  return { inputs: plan.inputs.map(named), outputs: plan.outputs.map(named), profiles, knownAnswer };
}

/** Whether an axis of an input is the batch: its first, or the one that is named like it or left open in a state. */
export const isBatchAxis = (inputs: NamedAxes['inputs'], name: string, axis: number): boolean =>
  openDimensions(inputs).some(
    ({ isBatch, places }) => isBatch && places.some((place) => place.input === name && place.axis === axis),
  );

/**
 * The first input or output whose open first axis is not the batch, and what states that: sizes of the known answer, names of axes, ranges of profiles. undefined where
 * each is the batch as far as anything states it.
 */
export function otherThanBatch(
  axes: NamedAxes,
): { readonly tensor: string; readonly why: string } | undefined {
  const { profiles = [], knownAnswer } = axes;
  const isValued = ({ name }: Named) => profiles.some((profile) => profile[name]?.values === true);
  const isOpen = ({ shape }: Named) => shape?.length !== 0 && typeof shape?.[0] !== 'number';
  const inputs = axes.inputs.filter((input) => !isValued(input));
  const isBatch = ({ name }: Named) => isBatchAxis(inputs, name, 0);
  const leader = inputs.find((input) => isOpen(input) && isBatch(input));
  const batch = openDimensions(inputs).find(({ isBatch, symbol }) => isBatch && symbol !== null);
  const symbol = batch?.symbol ?? null;
  const differs = ({ name, shape }: Named, why: string) => ({
    tensor: name,
    why: `the first axis of "${name}" [${shape!.map((size) => size ?? '?').join(', ')}] is not the batch: ${why}`,
  });
  for (const input of inputs.filter(isOpen)) {
    if (input.shape === null) continue;
    if (leader === undefined || !isBatch(input))
      return differs(input, symbol === null ? 'no axis is' : `the model calls the batch "${symbol}"`);
    const isNamed = input.shape[0] !== null && input.shape[0] === leader.shape![0];
    const at = profiles.findIndex((profile) => {
      const [own, other] = [profile[input.name], profile[leader.name]];
      return own && other && (['min', 'opt', 'max'] as const).some((end) => own[end][0] !== other[end][0]);
    });
    if (at >= 0 && !isNamed)
      return differs(input, `profile ${at} has other sizes of it than of "${leader.name}"`);
  }
  for (const output of axes.outputs.filter(isOpen)) {
    if (leader === undefined || output.shape === null) continue;
    const rows = knownRows(knownAnswer, leader.name, output.name);
    const other = rows.find(([batch, count]) => batch !== count);
    if (other !== undefined)
      return differs(output, `it is ${other[1]} where "${leader.name}" has ${other[0]}`);
    const [first = null] = output.shape;
    const isKnown = new Set(rows.map(([batch]) => batch)).size > 1 || first === symbol;
    if (!isKnown && typeof first === 'string' && isOtherThanBatch(first))
      return differs(
        output,
        symbol === null ? 'its name states so' : `the model calls the batch "${symbol}"`,
      );
  }
  return undefined;
}

/** First axes of an input and an output in each case of a known answer. */
const knownRows = (
  answer: NamedAxes['knownAnswer'],
  input: string,
  output: string,
): readonly (readonly [batch: number, count: number])[] =>
  (answer?.cases ?? []).flatMap(({ inputs, outputs }) => {
    const [batch, count] = [
      inputs.find(({ name }) => name === input)?.shape[0],
      outputs.find(({ name }) => name === output)?.shape[0],
    ];
    return batch === undefined || count === undefined ? [] : [[batch, count] as const];
  });
