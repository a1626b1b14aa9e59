import type { Contract } from '../../../formats/contract/contract.js';
import type { ReferenceHeader } from '../../../formats/reference/reference.js';
import type { ModelBindings } from '../contract/bindings.js';
import { remedies } from './compare-bindings.js';
import type { ContractFinding } from './finding.js';
import { rangeText, sizesOutside } from './own-numbers.js';

/** A reference of other weights makes every comparison meaningless. */
export function checkWeights(
  { provenance }: ReferenceHeader,
  digest: string | null,
): readonly ContractFinding[] {
  if (provenance === null || digest === null || provenance.model.digest === digest) return [];
  return [
    {
      id: 'other-weights',
      wrong: 'data',
      severity: 'error',
      about: 'model',
      message: `The reference was recorded with another model (${provenance.model.path}, ${provenance.model.digest.slice(0, 12)}) than this one (${digest.slice(0, 12)}).`,
      why: 'The digests of graph and weights differ.',
      remedy: remedies.data,
    },
  ];
}

/** Assertions about dimensions that the model's own shape, or what was recorded, contradicts: found without a run. */
export function checkDimensions(
  { assertions }: Contract,
  model: ModelBindings | null,
  data: Pick<ReferenceHeader, 'outputs'> | null,
): readonly ContractFinding[] {
  return assertions.flatMap((assertion): readonly ContractFinding[] => {
    if (assertion.kind !== 'dimension-equals') return [];
    const { tensor, axis, value, id, sentence } = assertion;
    const sizeIn = (outputs: ModelBindings['outputs'] | undefined) =>
      outputs?.find(({ name }) => name === tensor)?.shape?.at(axis);
    const others = [
      { source: 'model', where: 'the model', size: sizeIn(model?.outputs) },
      { source: 'data', where: 'the recorded data', size: sizeIn(data?.outputs) },
    ] as const;
    const known = others.filter(({ size }) => typeof size === 'number');
    const against = known.filter(({ size }) => size !== value);
    const [first] = against;
    if (first === undefined) return [];
    const agree = known.length === 2 && others[0].size === others[1].size;
    const wrong = agree
      ? 'contract'
      : known.length === 2 && against.length === 1
        ? first.source
        : 'undecided';
    return [
      {
        id: 'assertion-against-shape',
        wrong,
        severity: 'error',
        about: tensor,
        message: `The assertion ${id} ("${sentence}") requires ${value}; ${axis === -1 ? 'the last dimension' : `dimension ${axis}`} of ${tensor} is ${against.map(({ where, size }) => `${size} in ${where}`).join(', ')}.`,
        why: agree
          ? 'The model and the recorded data agree, so the contract is wrong.'
          : wrong === 'undecided'
            ? 'Nothing else states it.'
            : 'The other two agree.',
        remedy: remedies[wrong],
      },
    ];
  });
}

/** The engine must take every size of the schedule. */
export function checkEngineProfiles(
  { schedule }: Contract,
  model: ModelBindings,
): readonly ContractFinding[] {
  if (schedule === null) return [];
  const { tensor, axis, first, rest } = schedule;
  const profiles = model.inputs.find(({ name }) => name === tensor)?.profiles ?? [];
  const ranges = profiles.map(({ min, max }) => ({ min: min[axis] ?? 0, max: max[axis] ?? 0 }));
  return sizesOutside(schedule, ranges).map((frames) => ({
    id: 'schedule-outside-engine',
    wrong: 'model',
    severity: 'error',
    about: tensor,
    message: `The engine takes ${ranges.map(rangeText).join(', ')} frames of ${tensor}; the contract's schedule has chunks of ${frames}.`,
    why: 'The engine was built with other profiles than the contract needs.',
    remedy: `Build it again with ${tensor} from ${Math.min(first, rest)} to ${Math.max(first, rest)} frames.`,
  }));
}
