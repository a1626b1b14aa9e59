import type { CacheLengthRule, ChunkSchedule, Contract } from '../../../formats/contract/contract.js';
import { integerTensor } from '../../../formats/tensor/tensor.js';
import { checkAssertions, type Step } from '../contract/assertions.js';
import {
  type PredictedLength,
  scheduled,
  simulateLengths,
  validResultLength,
} from '../contract/cache-length.js';
import { stepsOf } from '../fastconformer.js';
import type { ContractFinding } from './finding.js';

/**
 * Checks a contract against its own numbers, before anything is built: capacities that differ, sizes that contradict each other or lie outside every
 * profile, lengths below zero, a state that never grows, assertions that the cache-length rule breaks. The contract alone is wrong: no data and no model
 * are needed.
 */
export const checkOwnNumbers = (contract: Contract): readonly ContractFinding[] => [
  ...checkCapacity(contract),
  ...checkProfiles(contract),
  ...checkStatedSizes(contract),
  ...checkLengths(contract),
];

/** The capacity of a state stands in the rule, in how it is padded, and in its own shape: three numbers for one thing. */
function checkCapacity({ cacheLengthRule, state, inputs, lengths }: Contract): readonly ContractFinding[] {
  return state.flatMap(({ input, axis, capacity, validLength }): readonly ContractFinding[] => {
    if (axis === null) return [];
    const size = inputs.find(({ name }) => name === input)?.shape?.[axis];
    const isCounted = validLength !== null && validLength === lengths.stateOut;
    const stated = [
      { what: 'cache_size', value: isCounted ? cacheLengthRule?.capacity : null },
      { what: 'the size it is padded to', value: capacity },
      { what: `dimension ${axis} of its shape`, value: size },
    ].filter(({ value }) => typeof value === 'number');
    if (new Set(stated.map(({ value }) => value)).size < 2) return [];
    return [
      {
        id: 'capacity-disagrees',
        wrong: 'contract',
        severity: 'error',
        about: input,
        message: `The contract has several capacities for ${input}: ${stated.map(({ what, value }) => `${value} (${what})`).join(', ')}.`,
        why: 'A state has as many positions as its shape: its length is bounded by them, and it is padded up to them.',
        remedy: 'Correct the wrong one; the shape in the model decides.',
      },
    ];
  });
}

/** Every size of the schedule must lie inside some profile. */
function checkProfiles({ schedule, profiles }: Contract): readonly ContractFinding[] {
  if (schedule === null) return [];
  const { tensor, axis, first, rest, preEncode } = schedule;
  const ranges = profiles.flatMap(({ ranges: all }) => all[tensor]?.[axis] ?? []);
  return sizesOutside(schedule, ranges).map((frames) => ({
    id: 'schedule-outside-profiles',
    wrong: 'contract',
    severity: 'error',
    about: tensor,
    message: `Chunks of ${frames} frames lie in none of the contract's own profiles (${ranges.map(rangeText).join(', ')}).`,
    why: `The schedule is ${first}, then ${rest} with ${preEncode.rest} pre-encode frames in front.`,
    remedy: `Add ${tensor} with ${frames} frames to a profile: a runtime may run a shape outside every profile with the shape before it, without an error.`,
  }));
}

type Range = { readonly min: number; readonly max: number };

/** Sizes of a schedule that no range includes; none where there are no ranges. */
export const sizesOutside = ({ first, rest }: ChunkSchedule, ranges: readonly Range[]): readonly number[] =>
  ranges.length === 0
    ? []
    : [...new Set([first, rest])].filter(
        (frames) => !ranges.some(({ min, max }) => frames >= min && frames <= max),
      );

export const rangeText = ({ min, max }: Range): string => (min === max ? `${min}` : `${min} to ${max}`);

function checkStatedSizes({ schedule }: Contract): readonly ContractFinding[] {
  if (schedule === null) return [];
  const { first, rest, stated, tensor, preEncode } = schedule;
  if (stated.every((frames) => frames === first || frames === rest)) return [];
  return [
    {
      id: 'sizes-disagree',
      wrong: 'contract',
      severity: 'warning',
      about: tensor,
      message: `The contract names chunks of ${stated.join(' and ')} frames, but its chunk size and pre-encode frames make ${first} and ${rest}.`,
      why: `${rest - preEncode.rest} frames of its own and ${preEncode.rest} of the chunk before.`,
      remedy: 'One missing pre-encode frame is enough to keep the state empty: correct the wrong one.',
    },
  ];
}

/** Long enough for a state of 256 to fill up in steps of one and to stay full for a while. */
const SIMULATED = 300;

function checkLengths({
  cacheLengthRule: rule,
  schedule,
  ...contract
}: Contract): readonly ContractFinding[] {
  if (rule === null || schedule === null) return [];
  const predicted = simulateLengths(rule, scheduled(schedule, SIMULATED));
  return [
    ...negativeLength(predicted, rule),
    ...neverGrows(predicted, rule, schedule, contract.lengths),
    ...brokenAssertions(predicted, rule, schedule, contract),
  ];
}

function negativeLength(
  predicted: readonly PredictedLength[],
  { drop, dropExtra }: CacheLengthRule,
): readonly ContractFinding[] {
  const chunk = predicted.findIndex(({ stateOut }) => stateOut < 0);
  const found = predicted[chunk];
  if (found === undefined) return [];
  return [
    {
      id: 'negative-length',
      wrong: 'contract',
      severity: 'error',
      about: 'cacheLengthRule',
      message: `After chunk ${chunk} (${found.frames} frames) the state would be ${found.stateOut} long.`,
      why: `${found.frames} frames are ${stepsOf(found.frames)} steps, of which ${dropExtra} + ${drop} are dropped.`,
      remedy:
        'Correct cache_drop_size or the chunk size; runtimes pass negative lengths on without an error.',
    },
  ];
}

function neverGrows(
  predicted: readonly PredictedLength[],
  { drop, dropExtra }: CacheLengthRule,
  { first, rest }: ChunkSchedule,
  lengths: Contract['lengths'],
): readonly ContractFinding[] {
  if (predicted.some(({ stateOut }) => stateOut !== 0)) return [];
  const growing = [1, 2, 4, 8].map((more) => rest + more).find((frames) => stepsOf(frames) > stepsOf(rest));
  return [
    {
      id: 'state-never-grows',
      wrong: 'contract',
      severity: 'warning',
      about: lengths.stateOut ?? 'cacheLengthRule',
      message: `With chunks of ${first} and ${rest} frames the state stays empty: nothing is carried from chunk to chunk.`,
      why: `${rest} frames are ${stepsOf(rest)} steps, exactly what is dropped (${dropExtra} + ${drop})${growing === undefined ? '' : `; with ${growing} frames it would grow`}.`,
      remedy:
        'Check cache_drop_size and whether the chunk has its pre-encode frames; a stream without state needs no caches.',
    },
  ];
}

/** The contract's own assertions, checked against the lengths that its own numbers make. */
function brokenAssertions(
  predicted: readonly PredictedLength[],
  rule: CacheLengthRule,
  schedule: ChunkSchedule,
  { lengths, assertions: all }: Pick<Contract, 'lengths' | 'assertions'>,
): readonly ContractFinding[] {
  const result = validResultLength(rule, schedule.rest - schedule.preEncode.rest);
  const assertions = all.filter(({ tensor }) => tensor === lengths.stateOut || tensor === lengths.result);
  const listed = new Set<string>();
  let before: Step | undefined;
  return predicted.flatMap((step, chunk): ContractFinding[] => {
    const made = simulatedStep(step, chunk, result, lengths);
    const violations = checkAssertions({ assertions }, made, before);
    before = made;
    return violations
      .filter(({ assertion }) => !listed.has(assertion) && listed.add(assertion))
      .map(({ assertion, tensor, found, sentence }) => ({
        id: 'assertion-against-rule',
        wrong: 'contract',
        severity: 'error',
        about: tensor,
        message: `The assertion ${assertion} ("${sentence}") contradicts the contract's own numbers: at chunk ${chunk} they make ${found}.`,
        why: `steps(${step.frames}) = ${stepsOf(step.frames)}, drop_extra ${rule.dropExtra}, drop ${rule.drop}, capacity ${rule.capacity}; by the cache-length rule ${lengths.stateOut ?? 'the state'} is ${predicted
          .slice(0, 6)
          .map(({ stateOut }) => stateOut)
          .join(', ')}, … and ${lengths.result ?? 'the result'} is ${result}.`,
        remedy:
          tensor === lengths.stateOut
            ? `Correct the assertion: ${tensor} is 0 to ${rule.capacity} and never shrinks until it is full.`
            : result < 0
              ? 'Correct cache_drop_size: more is dropped than a chunk has.'
              : `Correct the assertion to ${result}, or the drop size.`,
      }));
  });
}

function simulatedStep(
  { stateIn, stateOut }: PredictedLength,
  chunk: number,
  result: number,
  lengths: Contract['lengths'],
): Step {
  const named = (name: string | null, value: number) =>
    name === null ? [] : [[name, integerTensor('int64', [1], [value])] as const];
  return {
    chunk,
    inputs: new Map(named(lengths.stateIn, stateIn)),
    outputs: new Map([...named(lengths.stateOut, stateOut), ...named(lengths.result, result)]),
  };
}
