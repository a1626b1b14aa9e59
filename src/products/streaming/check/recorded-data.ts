import type { CacheLengthRule, Contract } from '../../../formats/contract/contract.js';
import { recordedAs } from '../../../formats/reference/reference.js';
import type { ModelBindings } from '../contract/bindings.js';
import { simulateLengths } from '../contract/cache-length.js';
import { stepsOf } from '../fastconformer.js';
import { remedies } from './compare-bindings.js';
import type { ContractFinding } from './finding.js';
import { rangeText } from './own-numbers.js';
import type { RecordedLengths } from './recorded-lengths.js';

/** Checks recorded lengths against the contract's cache-length rule, its assertions and profiles, and the model's profiles. */
export function checkData(
  contract: Contract,
  recorded: readonly RecordedLengths[],
  model: ModelBindings | null,
): readonly ContractFinding[] {
  const rule = checkRule(contract, recorded);
  return [
    ...inventedLengths(recorded),
    ...(rule.finding === null ? [] : [rule.finding]),
    ...brokenAssertions(recorded, rule),
    ...recordedSizes(contract, recorded, model),
    ...brokenStream(recorded),
    ...wrongSides(recorded),
  ];
}

/** A recorder that repairs lengths hides those of the model. */
function inventedLengths(recorded: readonly RecordedLengths[]): readonly ContractFinding[] {
  const invented = recorded.filter(
    ({ stateOut, stateOutRaw }) =>
      stateOutRaw !== null && (stateOutRaw < 0 || (stateOut !== null && stateOut !== stateOutRaw)),
  );
  const [first] = invented;
  if (first === undefined) return [];
  return [
    {
      id: 'invented-lengths',
      wrong: 'data',
      severity: 'error',
      about: recordedAs.stateLengthRaw,
      message: `${invented.length} of ${recorded.length} chunks ${invented.length === 1 ? 'has' : 'have'} a length that the recorder invented: the model returned ${first.stateOutRaw} in chunk ${first.chunk}, and ${first.stateOut} is recorded.`,
      why: 'The recorder kept the length of the model beside the one it wrote.',
      remedy:
        'Find out why the model returns such a length (a wrong cache_drop_size does), then record again.',
    },
  ];
}

interface RuleCheck {
  /** Whether the data follows the cache-length rule; null where one of the two has no numbers. */
  readonly follows: boolean | null;
  readonly finding: ContractFinding | null;
}

/** One recorded step of the state's length. */
interface LengthStep {
  readonly chunk: number;
  readonly frames: number;
  readonly stateIn: number;
  readonly stateOut: number;
}

function checkRule(contract: Contract, recorded: readonly RecordedLengths[]): RuleCheck {
  const { cacheLengthRule: rule } = contract;
  const steps = recorded.flatMap(({ chunk, frames, stateIn, stateOut, stateOutRaw }): LengthStep[] =>
    frames === null || stateIn === null || stateOut === null
      ? []
      : [{ chunk, frames, stateIn, stateOut: stateOutRaw ?? stateOut }],
  );
  if (rule === null || steps.length === 0) return { follows: null, finding: null };
  const wrong = steps.find((step) => lengthAfter(step, rule) !== step.stateOut);
  if (wrong === undefined) return { follows: true, finding: null };
  const { chunk, frames, stateIn, stateOut } = wrong;
  const finding: ContractFinding = {
    id: 'lengths-against-rule',
    severity: 'error',
    about: contract.lengths.stateOut ?? 'state length',
    message: `Chunk ${chunk} (${frames} frames, ${stateIn} in the state) recorded a state of ${stateOut}; by the cache-length rule it is ${lengthAfter(wrong, rule)}.`,
    ...whyNotByRule(steps, wrong, rule, contract.schedule?.first),
  };
  return { follows: false, finding };
}

const lengthAfter = (
  { frames, stateIn }: Pick<LengthStep, 'frames' | 'stateIn'>,
  rule: CacheLengthRule,
): number => simulateLengths(rule, [frames], stateIn)[0]!.stateOut;

/** Other explanations of the recorded lengths: the size of the first chunk throughout, another capacity, another drop size, or nothing. */
function whyNotByRule(
  steps: readonly LengthStep[],
  wrong: LengthStep,
  rule: CacheLengthRule,
  first: number | undefined,
): Pick<ContractFinding, 'wrong' | 'why' | 'remedy'> {
  if (
    first !== undefined &&
    steps.every((step) => lengthAfter({ ...step, frames: first }, rule) === step.stateOut)
  )
    return {
      wrong: 'data',
      why: `Every chunk advanced as if it had ${first} frames, the size of the first: the recorder kept the first shape.`,
      remedy:
        'Record again with a session that takes the later size, or an engine whose profile includes it.',
    };
  const drops = new Set(
    steps
      .filter(({ stateOut }) => stateOut < rule.capacity)
      .map(({ frames, stateIn, stateOut }) => stateIn + stepsOf(frames) - rule.dropExtra - stateOut),
  );
  const [drop] = drops;
  const longest = Math.max(...steps.map(({ stateOut }) => stateOut));
  if (longest > rule.capacity && drops.size === 1 && drop === rule.drop)
    return {
      wrong: 'undecided',
      why: `The recorded state grows to ${longest}; the contract's capacity is ${rule.capacity}. Below that the recording follows the rule.`,
      remedy: 'Look how many positions the state of the model has, and correct cache_size in the contract.',
    };
  if (drops.size === 1 && drop !== undefined)
    return {
      wrong: 'undecided',
      why: `The whole recording fits a cache_drop_size of ${drop}; the contract has ${rule.drop}.`,
      remedy: `Record one chunk with the model. If its state is ${lengthAfter(wrong, { ...rule, drop })} long, correct the contract.`,
    };
  return {
    wrong: 'data',
    why: 'No other drop size explains the recording either: its lengths follow no rule.',
    remedy: remedies.data,
  };
}

/** An assertion that the data breaks while the data follows the rule is wrong; otherwise the data is suspect. */
function brokenAssertions(
  recorded: readonly RecordedLengths[],
  { follows, finding }: RuleCheck,
): readonly ContractFinding[] {
  const listed = new Set<string>();
  return recorded
    .flatMap(({ violations }) => violations)
    .filter(({ assertion }) => !listed.has(assertion) && listed.add(assertion))
    .map(({ assertion, tensor, chunk, found, sentence }) => {
      const wrong = follows === true ? 'contract' : (finding?.wrong ?? 'undecided');
      return {
        id: 'assertion-against-data',
        wrong,
        severity: 'error',
        about: tensor,
        message: `The recorded chunk ${chunk} breaks the assertion ${assertion} ("${sentence}"): ${found}.`,
        why:
          follows === true
            ? 'The recorded lengths follow the cache-length rule for these chunk sizes, so the assertion is wrong.'
            : follows === false
              ? "The recorded lengths do not follow the contract's cache-length rule either."
              : 'The contract has no cache-length rule that could decide.',
        remedy: remedies[wrong],
      };
    });
}

function recordedSizes(
  { schedule, profiles }: Contract,
  recorded: readonly RecordedLengths[],
  model: ModelBindings | null,
): readonly ContractFinding[] {
  if (schedule === null) return [];
  const { tensor, axis, first, rest } = schedule;
  const sizes = [...new Set(recorded.flatMap(({ frames }) => frames ?? []))];
  const binding = model?.inputs.find(({ name }) => name === tensor);
  const profilesOf = [
    {
      wrong: 'contract',
      where: 'the contract',
      ranges: profiles.flatMap(({ ranges }) => ranges[tensor]?.[axis] ?? []),
    },
    {
      wrong: 'model',
      where: 'the engine',
      ranges: (binding?.profiles ?? []).map(({ min, max }) => ({
        min: min[axis] ?? 0,
        max: max[axis] ?? Number.POSITIVE_INFINITY,
      })),
    },
  ] as const;
  return sizes.flatMap((size): readonly ContractFinding[] => {
    const outside = profilesOf.filter(
      ({ ranges }) => ranges.length > 0 && !ranges.some(({ min, max }) => size >= min && size <= max),
    );
    const found: ContractFinding[] = outside.map(({ wrong, where, ranges }) => ({
      id: 'size-outside-profile',
      wrong,
      severity: 'error',
      about: tensor,
      message: `Recorded chunks of ${size} frames lie in no profile of ${where} (${ranges.map(rangeText).join(', ')}).`,
      why: 'The recording shows that such chunks exist.',
      remedy: 'Add the size to a profile and build again.',
    }));
    if (size !== first && size !== rest)
      found.push({
        id: 'size-not-scheduled',
        wrong: 'undecided',
        severity: 'warning',
        about: tensor,
        message: `Recorded chunks have ${size} frames; the contract's schedule is ${first}, then ${rest}.`,
        why: 'Contract and recorded data disagree, and nothing else states it.',
        remedy: "Record again with the contract's schedule, or correct the schedule.",
      });
    return found;
  });
}

/** Wrong padding sides: by them only padding is compared and fed back. */
const wrongSides = (recorded: readonly RecordedLengths[]): readonly ContractFinding[] =>
  recorded.flatMap(({ chunk, wrongSides: found }) =>
    found.map(
      ({ tensor, axis, valid, size, padded }): ContractFinding => ({
        id: 'pad-side-against-data',
        wrong: 'contract',
        severity: 'error',
        about: tensor,
        message: `In chunk ${chunk} the ${valid} of ${size} positions of ${tensor} that count are recorded with the padding on the ${padded} of axis ${axis}; the contract has it on the other side.`,
        why: 'The recording shows where the state lies; with the side of the contract only padding would be compared.',
        remedy: `Correct the side of ${tensor} in the contract: ${padded}.`,
      }),
    ),
  );

/** Each chunk must be the next, and begin with the state that the one before left. */
function brokenStream(recorded: readonly RecordedLengths[]): readonly ContractFinding[] {
  const isOtherLength = ({ stateIn }: RecordedLengths, before: RecordedLengths): boolean =>
    before.stateOut !== null && stateIn !== null && stateIn !== before.stateOut;
  const isOtherState = (each: RecordedLengths, before: RecordedLengths): boolean =>
    isOtherLength(each, before) || each.otherStates.length > 0;
  const at = recorded.findIndex((each, position) => {
    const before = recorded[position - 1];
    return before !== undefined && (isOtherState(each, before) || each.chunk !== before.chunk + 1);
  });
  const [before, chunk] = [recorded[at - 1], recorded[at]];
  if (before === undefined || chunk === undefined) return [];
  if (!isOtherState(chunk, before))
    return [
      {
        id: 'chunks-not-in-order',
        wrong: 'data',
        severity: 'warning',
        about: 'chunk_idx',
        message: `After chunk ${before.chunk} comes chunk ${chunk.chunk}.`,
        why: 'In a stream chunks follow one another; where some are missing the state that goes in is not the one that came out.',
        remedy: 'Use this reference in functional mode only, or record it again without gaps.',
      },
    ];
  const tensors = chunk.otherStates.map(({ input }) => input);
  return [
    {
      id: 'stream-broken',
      wrong: 'data',
      severity: 'warning',
      about: isOtherLength(chunk, before) ? 'state length' : tensors.join(', '),
      message: isOtherLength(chunk, before)
        ? `Chunk ${chunk.chunk} begins with a state of ${chunk.stateIn}, but chunk ${before.chunk} ended with ${before.stateOut}.`
        : `Chunk ${chunk.chunk} begins with another ${chunk.otherStates.map(({ input, output, maxAbs }) => `${input} than chunk ${before.chunk} left in ${output} (largest difference ${maxAbs.toPrecision(3)})`).join(' and another ')}.`,
      why: 'In a stream the state that goes in is the state that came out.',
      remedy: 'Use this reference in functional mode only, or record it again without gaps.',
    },
  ];
}
