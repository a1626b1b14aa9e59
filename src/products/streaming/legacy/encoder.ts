import { z } from 'zod';
import type { FirstAndRest } from '../../../quality/tasks/recogniser.js';
import type { Contract } from '../contract/contract.js';
import { contractDtype, ignoredFields, parseForm } from '../contract/parse-form.js';
import { resolveContract, type StatedPadding } from '../contract/resolve.js';

/** Parts that the two streaming forms share. What is not what it should be is left out, and named among what was ignored. */
export const whole = z.number().int();
export const optionalWhole = whole.optional().catch(undefined);
export const firstAndRest = z
  .union([z.tuple([whole, whole]), whole])
  .optional()
  .catch(undefined);
export const range = z.object({ min: whole, opt: whole, max: whole });
const sentences = z
  .union([z.record(z.string(), z.string()), z.array(z.string())])
  .optional()
  .catch(undefined);
export const binding = z.object({
  name: z.string().min(1),
  dtype: z.string().nullish().catch(undefined),
  shape: z
    .array(z.union([whole.nonnegative(), z.string(), z.null()]))
    .max(32)
    .nullish(),
});

const padding = z.object({
  axis: optionalWhole,
  pad_to: optionalWhole,
  side: z.enum(['right', 'left']).optional().catch(undefined),
  fill_value: z.number().optional().catch(undefined),
});
const symbolPromise = z
  .object({ expected: optionalWhole, typical_values: z.array(whole).optional().catch(undefined) })
  .optional()
  .catch(undefined);
const constrained = binding.extend({
  constraints: z.record(z.string(), symbolPromise).optional().catch(undefined),
});

const encoderSchema = z.object({
  model: z.string().optional().catch(undefined),
  streaming: z
    .object({
      cache_size: optionalWhole,
      valid_out_len_expected: optionalWhole,
      cache_drop_size: optionalWhole,
      shift_size: firstAndRest,
      chunk_size: firstAndRest,
      pre_encode_cache_size: firstAndRest,
      drop_extra_pre_encoded: optionalWhole,
    })
    .optional()
    .catch(undefined),
  inputs: z.array(constrained).min(1),
  outputs: z.array(constrained).min(1),
  trt_optimization_profiles: z
    .array(z.object({ name: z.string().catch('unnamed'), dimensions: z.record(z.string(), range) }))
    .optional()
    .catch(undefined),
  runtime_contract: z
    .object({
      cache_padding: z.record(z.string(), padding.optional().catch(undefined)).optional().catch(undefined),
      assertions: sentences,
    })
    .optional()
    .catch(undefined),
  validation: z
    .object({
      tolerance: z
        .object({ atol: z.number().optional(), rtol: z.number().optional() })
        .optional()
        .catch(undefined),
    })
    .optional()
    .catch(undefined),
});
type EncoderFile = z.infer<typeof encoderSchema>;

/** Whether JSON is the binding contract of a streaming encoder; see docs/contracts.md. */
export const isEncoderForm = (content: Readonly<Record<string, unknown>>): boolean =>
  Array.isArray(content.inputs) && Array.isArray(content.outputs);

/** Reads the binding contract of a streaming encoder, layer-first and batch-first. Throws TF_CONTRACT_INVALID. */
export function readEncoderForm(path: string, content: unknown): Contract {
  const file = parseForm(path, encoderSchema, content);
  const { streaming, runtime_contract: runtime, validation } = file;
  const named = ({ name, dtype, shape }: z.infer<typeof binding>) => ({
    name,
    dtype: contractDtype(path, name, dtype),
    shape: shape ?? null,
  });
  return resolveContract({
    name: (file.model ?? 'model').replace(/\.onnx$/, ''),
    origin: { path, form: 'encoder' },
    inputs: file.inputs.map(named),
    outputs: file.outputs.map(named),
    padding: paddings(runtime?.cache_padding),
    cacheLengthRule: cacheLengthRuleOf(
      streaming?.cache_size,
      streaming?.drop_extra_pre_encoded,
      streaming?.cache_drop_size,
    ),
    chunk: pairOf(streaming?.chunk_size),
    shift: pairOf(streaming?.shift_size),
    preEncode: pairOf(streaming?.pre_encode_cache_size),
    statedSizes: file.inputs.flatMap(typicalSizes),
    validOutLength: streaming?.valid_out_len_expected ?? expectedOutput(file),
    stateBounds: null,
    profiles: (file.trt_optimization_profiles ?? []).map(({ name, dimensions }) => ({
      name,
      dimensions: new Map(Object.entries(dimensions)),
    })),
    stateCount: null,
    sentences: sentencesOf(runtime?.assertions),
    tolerances:
      validation?.tolerance === undefined
        ? []
        : [
            {
              tensor: null,
              absolute: validation.tolerance.atol ?? null,
              relative: validation.tolerance.rtol ?? null,
            },
          ],
    ignored: ignoredFields(content, file),
  });
}

export const pairOf = (value: readonly [number, number] | number | undefined): FirstAndRest | null => {
  if (value === undefined) return null;
  return typeof value === 'number' ? { first: value, rest: value } : { first: value[0], rest: value[1] };
};

export const cacheLengthRuleOf = (
  capacity: number | undefined,
  dropExtra: number | undefined,
  drop: number | undefined,
): Contract['cacheLengthRule'] =>
  capacity === undefined || dropExtra === undefined || drop === undefined
    ? null
    : { capacity, dropExtra, drop };

const sentencesOf = (
  given: Readonly<Record<string, string>> | readonly string[] | undefined,
): readonly string[] =>
  Array.isArray(given)
    ? given
    : Object.entries(given ?? {}).map(([about, sentence]) => `${about}: ${sentence}`);

function paddings(
  given: Readonly<Record<string, z.infer<typeof padding> | undefined>> | undefined,
): ReadonlyMap<string, StatedPadding> {
  return new Map(
    Object.entries(given ?? {}).flatMap(([output, stated]): [string, StatedPadding][] =>
      stated === undefined
        ? []
        : [
            [
              output,
              {
                axis: stated.axis ?? null,
                capacity: stated.pad_to ?? null,
                side: stated.side ?? 'right',
                fillValue: stated.fill_value ?? 0,
              },
            ],
          ],
    ),
  );
}

/** Sizes named for open axes other than the batch. */
const typicalSizes = ({ shape, constraints }: EncoderFile['inputs'][number]): readonly number[] =>
  (shape ?? []).flatMap((size, axis) =>
    typeof size === 'string' && axis > 0 ? (constraints?.[size]?.typical_values ?? []) : [],
  );

/** The size that is expected of an output's open last axis. */
function expectedOutput({ outputs }: EncoderFile): number | null {
  for (const { shape, constraints } of outputs) {
    const last = shape?.at(-1);
    const expected = typeof last === 'string' ? constraints?.[last]?.expected : undefined;
    if (expected !== undefined) return expected;
  }
  return null;
}
