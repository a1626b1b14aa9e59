import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { numbersOf } from '../../../formats/tensor/values.js';
import type { Contract } from '../contract/contract.js';
import { openAxis } from '../contract/pairs.js';
import { lastInUse } from '../contract/state.js';

/**
 * The axis of an output along which positions in time lie, as far as the contract and the recorded outputs of its chunk tell; null where they do not. What
 * is said of sides and padding would otherwise be said of channels.
 */
export function positionAxis(
  { state, lengths, outputs: bindings }: Pick<Contract, 'state' | 'lengths' | 'outputs'>,
  name: string,
  reference: Tensor,
  outputs: NamedTensors,
): number | null {
  const longest = (length: string | null): number | null => {
    const tensor = length === null ? undefined : outputs.get(length);
    return tensor === undefined ? null : Math.max(...Array.from(numbersOf(tensor)));
  };
  const pair = state.find(({ output }) => output === name);
  if (pair === undefined) {
    const valid = longest(lengths.result);
    const counted = onlyAxis(reference, (_axis, size) => size === valid);
    if (counted !== null) return counted;
    const binding = bindings.find((each) => each.name === name);
    return binding === undefined ? null : openAxis(binding);
  }
  if (pair.axis !== null) return pair.axis;
  const valid = longest(pair.validLength);
  if (valid === null || valid <= 0) return null;
  return onlyAxis(
    reference,
    (axis, size) =>
      size > valid &&
      [lastInUse(reference, axis, 'right'), lastInUse(reference, axis, 'left')].includes(valid),
  );
}

/** The one axis, the batch excepted, that fits; null for none and for several. */
function onlyAxis({ shape }: Tensor, fits: (axis: number, size: number) => boolean): number | null {
  const found = [...shape.keys()].filter((axis) => axis > 0 && fits(axis, shape[axis]!));
  return found.length === 1 ? found[0]! : null;
}
