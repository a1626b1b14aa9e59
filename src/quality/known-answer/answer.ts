import { existsSync } from 'node:fs';
import { z } from 'zod';
import { readText } from '../../base/files/files.js';
import { parseJson } from '../../base/files/json.js';
import { publishFile } from '../../base/files/publish.js';
import { faultText } from '../../base/text/schema-error.js';
import { sha256Schema } from '../../engines/identity/identity-schema.js';
import { knownAnswerSchema } from '../../engines/identity/known-answer-schema.js';
import type { Passport } from '../../engines/identity/passport-file.js';
import { TrtforgeError } from '../../errors.js';

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

/** What it does not cover. */
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
): KnownAnswer | undefined {
  if (passport?.knownAnswer !== undefined) return passport.knownAnswer;
  const path = answerPath(planPath);
  if (!hasAnswerBeside(planPath)) return undefined;
  const text = readText(path, LARGEST_FILE, 'TF_PASSPORT_INVALID');
  const parsed = answerFileSchema.safeParse(parseJson(text, LARGEST_FILE, (why) => invalid(path, why)));
  if (!parsed.success) throw invalid(path, faultText(parsed.error));
  const { plan, knownAnswer } = parsed.data;
  if (plan.sha256 !== planSha256) throw invalid(path, `it is of another plan, ${plan.sha256.slice(0, 12)}…`);
  return knownAnswer;
}

/** Writes the file beside a plan. Throws TF_WRITE_FAILED. */
export function writeAnswer(planPath: string, planSha256: string, knownAnswer: KnownAnswer): string {
  const path = answerPath(planPath);
  publishFile(path, `${JSON.stringify({ plan: { sha256: planSha256 }, knownAnswer }, null, 1)}\n`);
  return path;
}

const invalid = (path: string, why: string) =>
  new TrtforgeError('TF_PASSPORT_INVALID', `${path} is not the known answer of this engine: ${why}.`, {
    remedy: `Remove it, or record it again: trtforge engine check ${path.replace(/\.known-answer\.json$/, '')} --record --against model.onnx`,
  });
