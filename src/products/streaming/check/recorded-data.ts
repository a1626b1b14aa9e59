import { simulateLengths, stepsOf } from '../contract/cache-length.js';
import type { Contract } from '../contract/contract.js';
import { type ModelBindings, remedies } from './bindings.js';
import type { ContractFinding } from './finding.js';
import type { RecordedLengths } from './recorded-lengths.js';

/** Holds recorded lengths against the contract's law, its promises and profiles, and the model's profiles. */
export function checkData(
  contract: Contract,
  recorded: readonly RecordedLengths[],
  model: ModelBindings | null,
): readonly ContractFinding[] {
  const law = lawVerdict(contract, recorded);
  return [
    ...inventedLengths(recorded),
    ...(law.finding === null ? [] : [law.finding]),
    ...promisesInData(recorded, law),
    ...sizesInData(contract, recorded, model),
    ...brokenStream(recorded),
    ...wrongSides(recorded),
  ];
}

/** A recorder that repairs lengths hides what the model said. */
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
      about: 'cache_len_out_raw_value',
      message: `${invented.length} of ${recorded.length} chunks ${invented.length === 1 ? 'has' : 'have'} a length that the recorder invented: chunk ${first.chunk} came out as ${first.stateOutRaw} and stands there as ${first.stateOut}.`,
      why: 'The recorder kept what the model gave beside what it wrote.',
      remedy: 'Find out why the model gives such a length (a wrong cache_drop_size does), then record again.',
    },
  ];
}

interface LawVerdict {
  /** Whether the data does what the law says; null when one of the two is silent. */
  readonly follows: boolean | null;
  readonly finding: ContractFinding | null;
}

function lawVerdict({ law, schedule, lengths }: Contract, recorded: readonly RecordedLengths[]): LawVerdict {
  if (law === null) return { follows: null, finding: null };
  const usable = recorded.flatMap(({ chunk, frames, stateIn, stateOut, stateOutRaw }) =>
    frames === null || stateIn === null || stateOut === null
      ? []
      : [{ chunk, frames, stateIn, stateOut: stateOutRaw ?? stateOut }],
  );
  if (usable.length === 0) return { follows: null, finding: null };
  const out = (frames: number, stateIn: number, drop = law.drop): number =>
    simulateLengths({ ...law, drop }, [frames], stateIn)[0]!.stateOut;
  const wrong = usable.find(({ frames, stateIn, stateOut }) => out(frames, stateIn) !== stateOut);
  if (wrong === undefined) return { follows: true, finding: null };
  const base = {
    id: 'lengths-against-law',
    severity: 'error',
    about: lengths.stateOut ?? 'state length',
    message: `Chunk ${wrong.chunk} (${wrong.frames} frames, ${wrong.stateIn} in the state) recorded a state of ${wrong.stateOut}; the law gives ${out(wrong.frames, wrong.stateIn)}.`,
  } as const;
  const stuck = schedule?.first;
  if (stuck !== undefined && usable.every(({ stateIn, stateOut }) => out(stuck, stateIn) === stateOut))
    return {
      follows: false,
      finding: {
        ...base,
        wrong: 'data',
        why: `Every chunk advanced as if it had ${stuck} frames, the size of the first: what recorded it kept the first shape.`,
        remedy: 'Record again with a session that takes the later size, or an engine whose profile holds it.',
      },
    };
  const drops = new Set(
    usable
      .filter(({ stateOut }) => stateOut < law.capacity)
      .map(({ frames, stateIn, stateOut }) => stateIn + stepsOf(frames) - law.dropExtra - stateOut),
  );
  const [drop] = drops;
  const longest = Math.max(...usable.map(({ stateOut }) => stateOut));
  if (longest > law.capacity && drops.size === 1 && drop === law.drop)
    return {
      follows: false,
      finding: {
        ...base,
        wrong: 'undecided',
        why: `The recorded state grows to ${longest}; the contract's capacity is ${law.capacity}. Below that the recording follows the law.`,
        remedy:
          'The model knows: see how many positions its state has, and correct cache_size in the contract.',
      },
    };
  if (drops.size === 1 && drop !== undefined)
    return {
      follows: false,
      finding: {
        ...base,
        wrong: 'undecided',
        why: `The whole recording fits a cache_drop_size of ${drop}; the contract says ${law.drop}.`,
        remedy: `The model knows: record one chunk with it. If it gives ${out(wrong.frames, wrong.stateIn, drop)}, correct the contract.`,
      },
    };
  return {
    follows: false,
    finding: {
      ...base,
      wrong: 'data',
      why: 'No other drop size explains the recording either: its lengths follow no rule.',
      remedy: remedies.data,
    },
  };
}

/** A promise that the data breaks while the data follows the law is a wrong promise; otherwise the data is suspect. */
function promisesInData(
  recorded: readonly RecordedLengths[],
  { follows, finding }: LawVerdict,
): readonly ContractFinding[] {
  const told = new Set<string>();
  return recorded
    .flatMap(({ violations }) => violations)
    .filter(({ assertion }) => !told.has(assertion) && told.add(assertion))
    .map(({ assertion, tensor, chunk, found, sentence }) => {
      const wrong = follows === true ? 'contract' : (finding?.wrong ?? 'undecided');
      return {
        id: 'promise-against-data',
        wrong,
        severity: 'error',
        about: tensor,
        message: `The recorded chunk ${chunk} breaks the promise ${assertion} («${sentence}»): ${found}.`,
        why:
          follows === true
            ? 'The recorded lengths are what the cache-length law gives for these chunk sizes, so the promise is wrong.'
            : follows === false
              ? "The recorded lengths do not follow the contract's law either."
              : 'The contract gives no law that could decide.',
        remedy: remedies[wrong],
      };
    });
}

function sizesInData(
  { schedule, profiles }: Contract,
  recorded: readonly RecordedLengths[],
  model: ModelBindings | null,
): readonly ContractFinding[] {
  if (schedule === null) return [];
  const { tensor, axis, first, rest } = schedule;
  const sizes = [...new Set(recorded.flatMap(({ frames }) => frames ?? []))];
  const contractRanges = profiles.flatMap(({ ranges }) => ranges[tensor]?.[axis] ?? []);
  const binding = model?.inputs.find(({ name }) => name === tensor);
  const modelRanges = (binding?.profiles ?? []).map(({ min, max }) => ({
    min: min[axis] ?? 0,
    max: max[axis] ?? Number.POSITIVE_INFINITY,
  }));
  const isOutside = (
    size: number,
    ranges: readonly { readonly min: number; readonly max: number }[],
  ): boolean => ranges.length > 0 && !ranges.some(({ min, max }) => size >= min && size <= max);
  const made = (
    id: string,
    wrong: ContractFinding['wrong'],
    message: string,
    why: string,
  ): ContractFinding => ({
    id,
    wrong,
    severity: wrong === 'undecided' ? 'warning' : 'error',
    about: tensor,
    message,
    why,
    remedy:
      id === 'size-outside-profile'
        ? 'Add the size to a profile and build again.'
        : "Record again with the contract's schedule, or correct the schedule.",
  });
  const profilesOf = [
    { wrong: 'contract', where: 'the contract', ranges: contractRanges },
    { wrong: 'model', where: 'the engine', ranges: modelRanges },
  ] as const;
  return sizes.flatMap((size) => [
    ...profilesOf
      .filter(({ ranges }) => isOutside(size, ranges))
      .map(({ wrong, where }) =>
        made(
          'size-outside-profile',
          wrong,
          `Recorded chunks of ${size} frames lie in no profile of ${where}.`,
          'The recording shows that such chunks exist.',
        ),
      ),
    ...(size !== first && size !== rest
      ? [
          made(
            'size-not-scheduled',
            'undecided',
            `Recorded chunks have ${size} frames; the contract's schedule is ${first}, then ${rest}.`,
            'Contract and recorded data disagree, and nothing else speaks of it.',
          ),
        ]
      : []),
  ]);
}

/** What is compared and fed back by the wrong side is padding. */
const wrongSides = (recorded: readonly RecordedLengths[]): readonly ContractFinding[] =>
  recorded.flatMap(({ chunk, wrongSides: found }) =>
    found.map(
      ({ tensor, axis, valid, size, padded }): ContractFinding => ({
        id: 'pad-side-against-data',
        wrong: 'contract',
        severity: 'error',
        about: tensor,
        message: `In chunk ${chunk} the ${valid} of ${size} positions of ${tensor} that count are recorded with the padding on the ${padded} of axis ${axis}; the contract says that it is on the other side.`,
        why: 'The recording shows where the state lies; by the contract only padding would be compared.',
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
