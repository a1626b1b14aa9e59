import { integerTensor } from '../../../formats/tensor/values.js';
import type { ContractFinding } from '../check/finding.js';
import { checkAssertions, type Step } from './assertions.js';
import type { Contract, LengthLaw } from './contract.js';

/**
 * The convolutions in front of a FastConformer encoder, 8x subsampling: `stages` in a row, each of `floor((L + 2 padding - kernel) / stride) + 1` frames.
 * Source: Rekesh et al., Fast Conformer with Linearly Scalable Attention, 2023 (arXiv:2305.05084); NeMo's `dw_striding` subsampling with factor 8.
 */
const FASTCONFORMER_SUBSAMPLING = { stages: 3, kernel: 3, stride: 2, padding: 1 } as const;

/** Encoder steps of so many frames. */
export function stepsOf(frames: number): number {
  const { stages, kernel, stride, padding } = FASTCONFORMER_SUBSAMPLING;
  let steps = frames;
  for (let stage = 0; stage < stages; stage++)
    steps = Math.floor((steps + 2 * padding - kernel) / stride) + 1;
  return steps;
}

export interface PredictedLength {
  readonly frames: number;
  readonly stateIn: number;
  /** Negative where the contract cannot be: more is dropped than comes in. */
  readonly stateOut: number;
}

/**
 * How long the state is after each chunk: `out = min(capacity, in + steps(T) - dropExtra - drop)`. It reproduces every length that was published for the
 * Parakeet streaming encoder.
 */
export function simulateLengths(
  { capacity, dropExtra, drop }: LengthLaw,
  frames: Iterable<number>,
  start = 0,
): readonly PredictedLength[] {
  let stateIn = start;
  const predicted: PredictedLength[] = [];
  for (const each of frames) {
    const stateOut = Math.min(capacity, stateIn + stepsOf(each) - dropExtra - drop);
    predicted.push({ frames: each, stateIn, stateOut });
    stateIn = stateOut;
  }
  return predicted;
}

/** Valid steps of every result: those of the chunk's own frames, without what looks ahead. */
export const validResultLength = (law: LengthLaw, ownFrames: number): number => stepsOf(ownFrames) - law.drop;

/** Chunk sizes of a stream: the first, then the rest. */
export const scheduled = (
  { first, rest }: { first: number; rest: number },
  chunks: number,
): readonly number[] => Array.from({ length: chunks }, (_, chunk) => (chunk === 0 ? first : rest));

/** Long enough for a state of 256 to fill up in steps of one and to stay full for a while. */
const SIMULATED = 300;

/**
 * Runs a contract against its own numbers, before anything is built: lengths that go below zero, a state that never grows, promises that the law breaks,
 * sizes that contradict each other or lie outside every profile. All of it is the contract's own fault: no data and no model were asked.
 */
export function checkLaw(contract: Contract): readonly ContractFinding[] {
  return [...checkProfiles(contract), ...checkSizes(contract), ...checkLengths(contract)];
}

function checkLengths(contract: Contract): readonly ContractFinding[] {
  const { law, schedule } = contract;
  if (law === null || schedule === null) return [];
  const predicted = simulateLengths(law, scheduled(schedule, SIMULATED));
  return [
    ...negativeLength(predicted, law),
    ...neverGrows(predicted, contract),
    ...brokenPromises(predicted, contract),
  ];
}

function negativeLength(
  predicted: readonly PredictedLength[],
  { drop, dropExtra }: LengthLaw,
): readonly ContractFinding[] {
  const chunk = predicted.findIndex(({ stateOut }) => stateOut < 0);
  const found = predicted[chunk];
  if (found === undefined) return [];
  return [
    {
      id: 'negative-length',
      wrong: 'contract',
      severity: 'error',
      about: 'law',
      message: `After chunk ${chunk} (${found.frames} frames) the state would be ${found.stateOut} long.`,
      why: `${found.frames} frames are ${stepsOf(found.frames)} steps, of which ${dropExtra} + ${drop} are dropped.`,
      remedy: 'Correct cache_drop_size or the chunk size; runtimes pass negative lengths on without a word.',
    },
  ];
}

function neverGrows(predicted: readonly PredictedLength[], contract: Contract): readonly ContractFinding[] {
  const { law, schedule, lengths } = contract;
  if (law === null || schedule === null || predicted.some(({ stateOut }) => stateOut !== 0)) return [];
  const growing = [1, 2, 4, 8]
    .map((more) => schedule.rest + more)
    .find((frames) => stepsOf(frames) > stepsOf(schedule.rest));
  return [
    {
      id: 'state-never-grows',
      wrong: 'contract',
      severity: 'warning',
      about: lengths.stateOut ?? 'law',
      message: `With chunks of ${schedule.first} and ${schedule.rest} frames the state stays empty for ever: nothing is carried from chunk to chunk.`,
      why: `${schedule.rest} frames are ${stepsOf(schedule.rest)} steps, exactly what is dropped (${law.dropExtra} + ${law.drop})${growing === undefined ? '' : `; with ${growing} frames it would grow`}.`,
      remedy:
        'Check cache_drop_size and whether the chunk has its pre-encode frames; a stream without state needs no caches.',
    },
  ];
}

/** The contract's own assertions, held against the lengths that its own numbers give. */
function brokenPromises(
  predicted: readonly PredictedLength[],
  contract: Contract,
): readonly ContractFinding[] {
  const { law, schedule, lengths } = contract;
  if (law === null || schedule === null) return [];
  const result = validResultLength(law, schedule.rest - schedule.preEncode.rest);
  const told = new Set<string>();
  const about = [lengths.stateOut, lengths.result];
  const assertions = contract.assertions.filter(({ tensor }) => about.includes(tensor));
  let before: Step | undefined;
  return predicted.flatMap((step, chunk): ContractFinding[] => {
    const made = simulatedStep(step, chunk, result, lengths);
    const violations = checkAssertions({ assertions }, made, before);
    before = made;
    return violations
      .filter(({ assertion }) => !told.has(assertion) && told.add(assertion))
      .map(({ assertion, tensor, found, sentence }) => ({
        id: 'promise-against-law',
        wrong: 'contract',
        severity: 'error',
        about: tensor,
        message: `The promise ${assertion} («${sentence}») contradicts the contract's own numbers: at chunk ${chunk} they give ${found}.`,
        why: `steps(${step.frames}) = ${stepsOf(step.frames)}, drop_extra ${law.dropExtra}, drop ${law.drop}, capacity ${law.capacity}; the law gives ${predicted.slice(0, 6).map(({ stateOut }) => stateOut)}, … for ${lengths.stateOut ?? 'the state'} and ${result} for ${lengths.result ?? 'the result'}.`,
        remedy:
          tensor === lengths.stateOut
            ? `State that grows keeps this promise: ${tensor} is 0 to ${law.capacity} and never shrinks until it is full.`
            : result < 0
              ? 'Correct cache_drop_size: more is dropped than a chunk has.'
              : `Correct the promise to ${result}, or the drop size.`,
      }));
  });
}

function simulatedStep(
  { stateIn, stateOut }: PredictedLength,
  chunk: number,
  result: number,
  lengths: Contract['lengths'],
): Step {
  const scalar = (value: number) => integerTensor('int64', [1], [value]);
  const named = (name: string | null, value: number) =>
    name === null ? [] : [[name, scalar(value)] as const];
  return {
    chunk,
    inputs: new Map(named(lengths.stateIn, stateIn)),
    outputs: new Map([...named(lengths.stateOut, stateOut), ...named(lengths.result, result)]),
  };
}

export const rangeText = ({ min, max }: { readonly min: number; readonly max: number }): string =>
  min === max ? `${min}` : `${min} to ${max}`;

/** Every size of the schedule must lie inside some profile. */
function checkProfiles({ schedule, profiles }: Contract): readonly ContractFinding[] {
  if (schedule === null || profiles.length === 0) return [];
  const { tensor, axis, first, rest } = schedule;
  const ranges = profiles.flatMap(({ ranges: all }) => all[tensor]?.[axis] ?? []);
  if (ranges.length === 0) return [];
  const missing = [...new Set([first, rest])].filter(
    (frames) => !ranges.some(({ min, max }) => frames >= min && frames <= max),
  );
  return missing.map((frames) => ({
    id: 'schedule-outside-profiles',
    wrong: 'contract',
    severity: 'error',
    about: tensor,
    message: `Chunks of ${frames} frames lie in none of the contract's own profiles (${ranges.map(rangeText).join(', ')}).`,
    why: `The schedule is ${first}, then ${rest} with ${schedule.preEncode.rest} pre-encode frames in front.`,
    remedy: `Add ${tensor} with ${frames} frames to a profile; a shape outside every profile may run with the shape before it, and nobody is told.`,
  }));
}

function checkSizes({ schedule }: Contract): readonly ContractFinding[] {
  if (schedule === null) return [];
  const { first, rest, stated, tensor } = schedule;
  const other = [...new Set(stated)].filter((frames) => frames !== first && frames !== rest);
  if (other.length === 0) return [];
  return [
    {
      id: 'sizes-disagree',
      wrong: 'contract',
      severity: 'warning',
      about: tensor,
      message: `The contract names chunks of ${stated.join(' and ')} frames, but its chunk size and pre-encode frames make ${first} and ${rest}.`,
      why: `${rest - schedule.preEncode.rest} frames of its own and ${schedule.preEncode.rest} of the chunk before.`,
      remedy: 'One missing pre-encode frame is enough to keep the state empty: correct whichever is wrong.',
    },
  ];
}
