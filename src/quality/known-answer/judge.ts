import type { VerifyOutcome } from '../verify/outcome.js';
import type { AnswerCase, AnsweredOutput } from './answer.js';
import type { WrongElement } from './result.js';
import { type Sketch, SLICE_SUMS, sketchError, sliceErrors } from './sketch.js';

/** The judgement of one output of a case, compared with its answer. */
export interface JudgedAnswer {
  readonly outcome: VerifyOutcome;
  readonly reason: string | null;
  readonly wrong: WrongElement | null;
  readonly measured: { readonly rms: number; readonly max: number } | null;
}

/** Of a set: to this share of its places near ties may have chosen others; from `OTHERS` on it is another set, if it was the same where it was built. */
const TIES = 0.1;
const OTHERS = 0.5;
/** A count may be another one by a near tie. */
const FEWEST = 8;

/** Three standard deviations of what so few sums say of all errors. */
const slack = (sums: number): number => 1 + 3 / Math.sqrt(2 * sums);

/** Compares an output's sketch with its answer, as a whole and each position of an axis by its own limit. Both have the same number of places. */
export function judgeAnswer(answer: AnsweredOutput, found: Sketch | undefined): JudgedAnswer {
  const { name, as, limit, slices } = answer;
  const whole = judgeWhole(answer, found);
  if (found === undefined || slices == null || whole.outcome === 'fail') return whole;
  const [worst] = sliceErrors(answer, found)
    .map(({ least, estimated, ...slice }, at) => {
      const most = limit.slices?.[at] ?? 0;
      const error = Math.max(least, estimated / slack(SLICE_SUMS));
      return { ...slice, error, most, share: error === 0 ? 0 : error / most };
    })
    .toSorted((a, b) => b.share - a.share);
  if (worst === undefined || worst.share <= 1) return whole;
  const { position, error, most, expected, actual } = worst;
  // Near ties may have chosen other rows.
  const outcome = as === 'set' && answer.measured === null ? 'inconclusive' : 'fail';
  const reason = `${name} is wrong at position ${position} of axis ${slices.axis}: errors of about ${short(error)} there, above ${short(most)}; the root mean square is ${actual}, and ${expected} in the reference.`;
  return {
    ...whole,
    outcome,
    reason,
    wrong: { output: name, place: position, axis: slices.axis, expected, actual },
  };
}

function judgeWhole(answer: AnsweredOutput, found: Sketch | undefined): JudgedAnswer {
  const { name, as, limit } = answer;
  const fail = (
    reason: string,
    wrong: WrongElement | null = null,
    measured: JudgedAnswer['measured'] = null,
  ) => ({
    outcome: 'fail' as const,
    reason: `${name} ${reason}`,
    wrong,
    measured,
  });
  if (found === undefined) return fail('is missing.');
  if (as !== 'set' && found.shape.join() !== answer.shape.join())
    return fail(`is [${found.shape.join(', ')}], and [${answer.shape.join(', ')}] in the reference.`);
  if (found.nan !== answer.nan || found.infinite !== answer.infinite)
    return fail(
      `has ${found.nan} NaN and ${found.infinite} infinite elements; the reference has ${answer.nan} and ${answer.infinite}.`,
    );
  const error = sketchError(answer, found);
  const { expected, actual, place } = error;
  const wrong = { output: name, place, expected, actual };
  const at = as === 'set' ? `sorted element ${place}` : `element ${place}`;
  const where = `${at} is ${actual}, and ${expected} in the reference`;
  const measured = { rms: error.rms, max: error.max };
  const passed = { outcome: 'pass' as const, reason: null, wrong: null, measured };
  if (as === 'values') {
    const isNear = error.rms <= limit.rms * slack(answer.sums.length) && error.max <= limit.max;
    if (isNear) return passed;
    const sizes = `root mean square ${short(error.rms)} of ${short(limit.rms)}, largest seen ${short(error.max)} of ${short(limit.max)}`;
    return fail(`is wrong: ${where} (errors: ${sizes}).`, wrong, measured);
  }
  const share = `${Math.round(100 * error.differing)} % of ${answer.values.length} elements differ`;
  if (as === 'exact') {
    const most = limit.rms + 3 * Math.sqrt(limit.rms / Math.max(1, answer.values.length));
    return error.differing <= most ? passed : fail(`is wrong: ${share}; ${where}.`, wrong, measured);
  }
  if (error.differing <= TIES) return passed;
  if (error.differing > OTHERS && answer.measured !== null && answer.values.length >= FEWEST)
    return fail(`has other rows: ${share}; ${where}.`, wrong, measured);
  return {
    outcome: 'inconclusive',
    reason: `${name} has rows that near ties may have chosen: ${share}.`,
    wrong,
    measured,
  };
}

/** The outputs of a case that are not what they should be. */
export const judgeCase = (answered: AnswerCase, found: readonly Sketch[]): readonly JudgedAnswer[] =>
  answered.outputs.map((output) =>
    judgeAnswer(
      output,
      found.find(({ name }) => name === output.name),
    ),
  );

const short = (value: number): string => value.toPrecision(3);
