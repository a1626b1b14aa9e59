import { existsSync } from 'node:fs';
import { z } from 'zod';
import { readText } from '../../base/files/files.js';
import { parseJson } from '../../base/files/json.js';
import { publishFile } from '../../base/files/publish.js';
import { faultText } from '../../base/text/schema-error.js';
import { passportPath } from '../../engines/identity/engine-name.js';
import { knownAnswerSchema, type Passport } from '../../engines/identity/passport.js';
import { sha256Schema } from '../../engines/identity/recipe.js';
import { TrtforgeError } from '../../errors.js';
import { quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import type { VerifyPrecision } from '../verify/result.js';
import { limitsFor, type Probabilities, toleranceOf } from '../verify/tolerance.js';

export type KnownAnswer = z.infer<typeof knownAnswerSchema>;
export type AnswerCase = KnownAnswer['cases'][number];
export type AnsweredOutput = AnswerCase['outputs'][number];

/** Of an engine without passport, or whose passport has none: a file beside the plan, which states whose answer it is. */
const answerFileSchema = z.object({
  plan: z.object({ sha256: sha256Schema }),
  knownAnswer: knownAnswerSchema,
});

/** Whether it has anything to compare: what has not proves nothing. */
export const hasOutputs = ({ cases }: KnownAnswer): boolean =>
  cases.some(({ outputs }) => outputs.length > 0);

/** The parts that it does not cover. */
export const uncovered = ({ left, cases }: KnownAnswer): readonly string[] => {
  const isOlder = cases.some(({ outputs }) => outputs.some(({ slices }) => slices === undefined));
  return isOlder ? [...left, OLDER] : left;
};

const OLDER =
  'an older trtforge recorded it: each output is judged as a whole, and scores that are all 0 beside boxes in pixels pass. To record it anew: trtforge build MODEL --force-rebuild --known-answer, with the options of its build';

const answerPath = (planPath: string): string => `${planPath}.known-answer.json`;

export const hasAnswerBeside = (planPath: string): boolean => existsSync(answerPath(planPath));

/** Answers have 20 KB. */
const LARGEST_FILE = 1 << 20;

/**
 * The known answer of a plan with this digest: its passport's, else that of the file beside it. Undefined where there is none.
 * Throws TF_PASSPORT_INVALID for a file that is none, or of another plan.
 */
export function readAnswer(
  planPath: string,
  passport: Pick<Passport, 'knownAnswer'> | null,
  planSha256: string,
  mustBeSigned: boolean,
): KnownAnswer | undefined {
  if (passport?.knownAnswer !== undefined) return bounded(passport.knownAnswer, passportPath(planPath));
  const path = answerPath(planPath);
  if (mustBeSigned || !hasAnswerBeside(planPath)) return undefined;
  const text = readText(path, LARGEST_FILE, 'TF_PASSPORT_INVALID');
  const parsed = answerFileSchema.safeParse(parseJson(text, LARGEST_FILE, (why) => invalid(path, why)));
  if (!parsed.success) throw invalid(path, faultText(parsed.error));
  const { plan, knownAnswer } = parsed.data;
  if (plan.sha256 !== planSha256) throw invalid(path, `it is of another plan, ${plan.sha256.slice(0, 12)}…`);
  return bounded(knownAnswer, path);
}

/** Codes are made for real inputs: on drawn ones a healthy engine may be off by some limits. What is off by more than this many is left out, as nothing can be said of it. */
export const DRAWN_CODES = 4;

/** Limits of earlier versions were a little wider. */
const OF_EARLIER = 2;

/** Probabilities whose logits are as large as they may be. */
const ANY_LOGITS: Probabilities = { logits: { peak: Infinity, rms: Infinity }, steepness: 1 };

/** Throws TF_PASSPORT_INVALID where a limit is beyond what `verify` allows of such an output, or nothing of it is kept: other weights would pass. */
function bounded(answer: KnownAnswer, path: string): KnownAnswer {
  const precision = answer.precision as VerifyPrecision;
  const isCoded = quantizedFormatNamed(precision) !== undefined;
  const most = OF_EARLIER * (isCoded ? DRAWN_CODES : 1);
  const isBounded = ({ name, as, limit, shape, values, sums, l2, max, slices }: AnsweredOutput) => {
    const elements = elementCount(shape);
    if (4 * values.length < Math.min(elements, sums.length)) return false;
    if (as === 'exact') return limit.max === 0 && limit.rms <= OF_EARLIER * toleranceOf(precision).differing;
    const rms = l2 / Math.sqrt(Math.max(1, elements));
    const types = { precision, dtype: 'float16', shares: max <= 1 ? ANY_LOGITS : undefined } as const;
    const usual = limitsFor(name, types, rms, { atol: [], rtol: [] }).usual!;
    const each = elements / (slices == null ? 1 : shape[slices.axis]!);
    return (
      limit.rms <= most * usual.rms(elements, rms, 'whole', true) &&
      limit.max <= most * usual.max(max) &&
      (limit.slices ?? []).every((own, at) => own <= most * usual.rms(each, slices?.rms[at] ?? 0, 'slice'))
    );
  };
  const wrong = answer.cases.flatMap(({ outputs }) => outputs).find((output) => !isBounded(output));
  if (wrong === undefined) return answer;
  throw invalid(path, `its limits of "${wrong.name}" are wider than those of verify, or it keeps no values`);
}

/** Writes the file beside a plan. Throws TF_WRITE_FAILED. */
export function writeAnswer(planPath: string, planSha256: string, knownAnswer: KnownAnswer): string {
  const path = answerPath(planPath);
  publishFile(path, `${JSON.stringify({ plan: { sha256: planSha256 }, knownAnswer }, null, 1)}\n`);
  return path;
}

const invalid = (path: string, why: string) =>
  new TrtforgeError('TF_PASSPORT_INVALID', `${path} has no known answer of this engine: ${why}.`, {
    remedy: path.endsWith('.known-answer.json')
      ? `Remove it, or record it again: trtforge engine check ${path.replace(/\.known-answer\.json$/, '')} --record --against model.onnx`
      : 'Build the engine again, with --force-rebuild --known-answer.',
  });
