import { z } from 'zod';
import { type Contract, type FirstAndRest, firstAndRestOf } from './contract.js';
import { contractDtype, ignoredFields, parseForm } from './parse-form.js';
import { resolveContract, type StatedContract, type StatedPadding } from './resolve.js';

/** A field that is left out, and named among what was ignored, where it is not what it should be. */
const ifValid = <T extends z.ZodType>(schema: T) => schema.optional().catch(undefined);

const whole = z.number().int();
const optionalWhole = ifValid(whole);
const firstAndRest = ifValid(z.union([z.tuple([whole, whole]), whole]));
const range = z.object({ min: whole, opt: whole, max: whole });
/** The cut of the signal into chunks, and the part of the state that is dropped after each. */
const chunkFields = {
  chunk_size: firstAndRest,
  shift_size: firstAndRest,
  pre_encode_cache_size: firstAndRest,
  drop_extra_pre_encoded: optionalWhole,
  cache_drop_size: optionalWhole,
};
const binding = z.object({
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
  side: ifValid(z.enum(['right', 'left'])),
  fill_value: ifValid(z.number()),
});
const symbolPromise = ifValid(z.object({ expected: optionalWhole, typical_values: ifValid(z.array(whole)) }));
const constrained = binding.extend({ constraints: ifValid(z.record(z.string(), symbolPromise)) });

const encoderSchema = z.object({
  model: ifValid(z.string()),
  streaming: ifValid(
    z.object({ cache_size: optionalWhole, valid_out_len_expected: optionalWhole, ...chunkFields }),
  ),
  inputs: z.array(constrained).min(1),
  outputs: z.array(constrained).min(1),
  trt_optimization_profiles: ifValid(
    z.array(z.object({ name: z.string().catch('unnamed'), dimensions: z.record(z.string(), range) })),
  ),
  runtime_contract: ifValid(
    z.object({
      cache_padding: ifValid(z.record(z.string(), ifValid(padding))),
      assertions: ifValid(z.union([z.record(z.string(), z.string()), z.array(z.string())])),
    }),
  ),
  validation: ifValid(
    z.object({
      tolerance: ifValid(z.object({ atol: z.number().optional(), rtol: z.number().optional() })),
    }),
  ),
});
type EncoderFile = z.infer<typeof encoderSchema>;

/** Whether JSON is the binding contract of a streaming encoder; see docs/contracts.md. */
export const isEncoderForm = (content: Readonly<Record<string, unknown>>): boolean =>
  Array.isArray(content.inputs) && Array.isArray(content.outputs);

/** Reads the binding contract of a streaming encoder, layer-first and batch-first. Throws TF_CONTRACT_INVALID. */
export function readEncoderForm(path: string, content: unknown): Contract {
  const file = parseForm(path, encoderSchema, content);
  const { streaming, runtime_contract: runtime, validation } = file;
  return resolveContract({
    name: (file.model ?? 'model').replace(/\.onnx$/, ''),
    origin: { path, form: 'encoder' },
    ...bindingsOf(path, file),
    padding: paddings(runtime?.cache_padding),
    ...chunksOf(streaming, streaming?.cache_size),
    statedSizes: file.inputs.flatMap(typicalSizes),
    validOutLength: streaming?.valid_out_len_expected ?? expectedOutput(file),
    profiles: (file.trt_optimization_profiles ?? []).map(({ name, dimensions }) => ({
      name,
      dimensions: new Map(Object.entries(dimensions)),
    })),
    sentences: sentencesOf(runtime?.assertions),
    tolerances: toleranceOfAll(validation?.tolerance),
    ignored: ignoredFields(content, file),
  });
}

/** Inputs and outputs by the names of `trtforge.contract/1`. Throws TF_CONTRACT_INVALID for an unknown dtype. */
function bindingsOf(
  path: string,
  { inputs, outputs }: Readonly<Record<'inputs' | 'outputs', readonly z.infer<typeof binding>[]>>,
): Pick<StatedContract, 'inputs' | 'outputs'> {
  const named = ({ name, dtype, shape }: z.infer<typeof binding>) => ({
    ...{ name, dtype: contractDtype(path, name, dtype), shape: shape ?? null },
  });
  return { inputs: inputs.map(named), outputs: outputs.map(named) };
}

/** The schedule and, where all of its numbers are there, the cache-length rule. */
function chunksOf(
  stated: Partial<z.infer<z.ZodObject<typeof chunkFields>>> = {},
  capacity: number | undefined,
): Pick<StatedContract, 'cacheLengthRule' | 'chunk' | 'shift' | 'preEncode'> {
  const { drop_extra_pre_encoded: dropExtra, cache_drop_size: drop } = stated;
  const isRule = capacity !== undefined && dropExtra !== undefined && drop !== undefined;
  return {
    cacheLengthRule: isRule ? { capacity, dropExtra, drop } : null,
    chunk: pairOf(stated.chunk_size),
    shift: pairOf(stated.shift_size),
    preEncode: pairOf(stated.pre_encode_cache_size),
  };
}

const pairOf = (value: readonly [number, number] | number | undefined): FirstAndRest | null =>
  value === undefined ? null : firstAndRestOf(value);

const toleranceOfAll = (
  stated: { readonly atol?: number | undefined; readonly rtol?: number | undefined } | undefined,
): Contract['tolerances'] =>
  stated === undefined
    ? []
    : [{ tensor: null, absolute: stated.atol ?? null, relative: stated.rtol ?? null }];

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
      stated === undefined ? [] : [[output, paddingOf(stated)]],
    ),
  );
}

const paddingOf = ({ axis, pad_to, side, fill_value }: z.infer<typeof padding>): StatedPadding => ({
  ...{ axis: axis ?? null, capacity: pad_to ?? null },
  ...{ side: side ?? 'right', fillValue: fill_value ?? 0 },
});

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
