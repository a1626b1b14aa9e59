import { z } from 'zod';
import { readText } from '../../base/files/files.js';
import { parseJson } from '../../base/files/json.js';
import { publishFile } from '../../base/files/publish.js';
import { faultText } from '../../base/text/schema-error.js';
import { TrtforgeError } from '../../errors.js';
import { scalarSchema } from './result.js';

export const baselineSchema = z.strictObject({
  schema: z.literal('trtforge.gate-baseline/1'),
  values: z.array(
    z.strictObject({
      check: z.string(),
      result: z.string(),
      field: z.string(),
      at: z.string(),
      value: z.number(),
      /** The values of the regression rule's `same` fields. */
      same: z.record(z.string(), scalarSchema),
    }),
  ),
});

/** The values that checks with a regression rule measured when the baseline was made. */
export type Baseline = z.infer<typeof baselineSchema>;
export type BaselineValue = Baseline['values'][number];

const LARGEST_BYTES = 4 << 20;

/** Reads a baseline. Errors: TF_GATE_BASELINE_INVALID, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export function readBaseline(path: string): Baseline {
  const text = readText(path, LARGEST_BYTES, 'TF_GATE_BASELINE_INVALID');
  const invalid = (why: string, cause?: unknown) =>
    new TrtforgeError('TF_GATE_BASELINE_INVALID', `${path} is not a valid baseline of a gate: ${why}.`, {
      cause,
    });
  const checked = baselineSchema.safeParse(parseJson(text, LARGEST_BYTES, invalid));
  if (checked.success) return checked.data;
  throw invalid(faultText(checked.error), checked.error);
}

type ValuePlace = Pick<BaselineValue, 'check' | 'result' | 'field' | 'at'>;

const key = ({ check, result, field, at }: ValuePlace): string => JSON.stringify([check, result, field, at]);

/** The entry for a place; undefined when the baseline has none, or has it for another field. */
export const baselineValue = (baseline: Baseline, place: ValuePlace): BaselineValue | undefined =>
  baseline.values.find((each) => key(each) === key(place));

/** New values over old ones. Old ones stay where their check still exists and nothing new was measured for its result. */
export function mergeBaseline(
  old: Baseline | null,
  measured: readonly BaselineValue[],
  checks: ReadonlySet<string>,
): Baseline {
  const renewed = new Set(measured.map(({ check, result }) => JSON.stringify([check, result])));
  const kept = (old?.values ?? []).filter(
    ({ check, result }) => checks.has(check) && !renewed.has(JSON.stringify([check, result])),
  );
  const values = [...kept, ...measured].sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return { schema: 'trtforge.gate-baseline/1', values };
}

/** Writes a baseline whole or not at all; the same values make the same bytes. Errors: TF_WRITE_FAILED. */
export const writeBaseline = (path: string, baseline: Baseline): void =>
  publishFile(path, `${JSON.stringify(baseline, null, 2)}\n`);
