import type { Contract } from '../contract/contract.js';
import type { ReferenceHeader } from '../reference/reference.js';
import { type ModelBindings, remedies } from './bindings.js';
import type { ContractFinding } from './finding.js';

/** A promise about a dimension that stands otherwise in the model's own shape, or in what was recorded, needs no run to be found. */
export function checkPromisedDimensions(
  { assertions }: Contract,
  model: ModelBindings | null,
  data: Pick<ReferenceHeader, 'outputs'> | null,
): readonly ContractFinding[] {
  return assertions.flatMap((assertion): readonly ContractFinding[] => {
    if (assertion.kind !== 'dimension-equals') return [];
    const { tensor, axis, value, id, sentence } = assertion;
    const sizeIn = (outputs: ModelBindings['outputs'] | undefined): number | null => {
      const size = outputs?.find(({ name }) => name === tensor)?.shape?.at(axis);
      return typeof size === 'number' ? size : null;
    };
    const [inModel, inData] = [sizeIn(model?.outputs), sizeIn(data?.outputs)];
    const others = [
      ...(inModel === null ? [] : [{ where: 'the model', witness: 'model' as const, size: inModel }]),
      ...(inData === null ? [] : [{ where: 'the recorded data', witness: 'data' as const, size: inData }]),
    ];
    const against = others.filter(({ size }) => size !== value);
    if (against.length === 0) return [];
    const agree = inModel !== null && inModel === inData;
    const wrong = agree
      ? 'contract'
      : others.length === 2 && against.length === 1
        ? against[0]!.witness
        : 'undecided';
    return [
      {
        id: 'promise-against-shape',
        wrong,
        severity: 'error',
        about: tensor,
        message: `The promise ${id} («${sentence}») wants ${value}; ${axis === -1 ? 'the last dimension' : `dimension ${axis}`} of ${tensor} is ${against.map(({ where, size }) => `${size} in ${where}`).join(', ')}.`,
        why: agree
          ? 'The model and the recorded data agree, so the contract is wrong.'
          : wrong === 'undecided'
            ? 'Nothing else speaks of it.'
            : 'The other two agree.',
        remedy: remedies[wrong],
      },
    ];
  });
}

/** The capacity of a state stands in the law, in how it is padded, and in its own shape: three numbers for one thing. */
export function checkCapacity({ law, state, inputs, lengths }: Contract): readonly ContractFinding[] {
  return state.flatMap(({ input, axis, capacity, validLength }): readonly ContractFinding[] => {
    if (axis === null) return [];
    const size = inputs.find(({ name }) => name === input)?.shape?.[axis];
    const isCounted = validLength !== null && validLength === lengths.stateOut;
    const said = [
      ...(law !== null && isCounted ? [{ what: 'cache_size', value: law.capacity }] : []),
      ...(capacity === null ? [] : [{ what: 'what it is filled up to', value: capacity }]),
      ...(typeof size === 'number' ? [{ what: `dimension ${axis} of its shape`, value: size }] : []),
    ];
    if (new Set(said.map(({ value }) => value)).size < 2) return [];
    return [
      {
        id: 'capacity-disagrees',
        wrong: 'contract',
        severity: 'error',
        about: input,
        message: `The contract has several capacities for ${input}: ${said.map(({ what, value }) => `${value} (${what})`).join(', ')}.`,
        why: 'A state has as many positions as its shape says; its length is bounded by them, and it is padded up to them.',
        remedy: 'Correct whichever is wrong; the shape in the model decides.',
      },
    ];
  });
}
