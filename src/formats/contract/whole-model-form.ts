import { z } from 'zod';
import type { Contract, DimensionRange } from './contract.js';
import {
  binding,
  bindingsOf,
  chunkFields,
  chunksOf,
  ifValid,
  optionalWhole,
  range,
  toleranceOfAll,
  whole,
} from './encoder-form.js';
import { contractInvalid, ignoredFields, parseForm } from './parse-form.js';
import { resolveContract, type StatedPadding } from './resolve.js';

const io = z.object({ inputs: z.array(binding).min(1), outputs: z.array(binding).min(1) });
const bounds = ifValid(z.union([z.object({ min: whole, max: whole }), z.tuple([whole, whole])]));
const shapes = z.record(z.string(), z.array(whole));
const profileMap = z.object({ min: shapes, opt: shapes, max: shapes });
const profileItem = z.looseObject({
  name: ifValid(z.string()),
  audio_signal_T: range.optional(),
  batch: range.optional(),
});

const number = z.number().optional();
const wholeModelSchema = z.object({
  model_id: ifValid(z.string()),
  encoder: z.object({ streaming_io: io }),
  streaming: ifValid(
    z.object({
      valid_out_len: optionalWhole,
      cache_len_expected: ifValid(z.union([whole, z.string()])),
      cache_len_bounds: bounds,
      cache_len_behavior: ifValid(z.string()),
      cache_pad: ifValid(z.object({ side: z.enum(['right', 'left']), value: z.number() }).partial()),
      ...chunkFields,
      cache: ifValid(z.object({ last_channel_size: optionalWhole, time_context_size: optionalWhole })),
    }),
  ),
  trt: ifValid(
    z.object({
      profiles: ifValid(
        z.object({ encoder_streaming: ifValid(z.union([z.array(profileItem), profileMap])) }),
      ),
      tolerances: ifValid(
        z.object({
          ort: ifValid(
            z.object({ default_atol: number, default_rtol: number, cache_last_time_atol: number }),
          ),
          trt: ifValid(z.object({ encoder_output_p100_max_abs: number })),
        }),
      ),
    }),
  ),
});
type WholeModelFile = z.infer<typeof wholeModelSchema>;
type Binding = z.infer<typeof binding>;

export const isWholeModelForm = (content: Readonly<Record<string, unknown>>): boolean =>
  typeof content.encoder === 'object' && content.encoder !== null;

/** Reads the streaming encoder of a whole-model contract (features, tokenizer, decoder and the like are ignored by name). Throws TF_CONTRACT_INVALID. */
export function readWholeModelForm(path: string, content: unknown): Contract {
  const file = parseForm(path, wholeModelSchema, content);
  const { streaming } = file;
  const stateBounds = boundsOf(streaming?.cache_len_bounds);
  const capacity = streaming?.cache?.last_channel_size ?? stateBounds?.max;
  return resolveContract({
    name: file.model_id ?? 'model',
    origin: { path, form: 'whole-model' },
    ...bindingsOf(path, file.encoder.streaming_io),
    padding: paddings(file),
    ...chunksOf(streaming, capacity),
    validOutLength: streaming?.valid_out_len ?? null,
    stateBounds,
    profiles: profilesOf(path, file),
    stateCount: typeof streaming?.cache_len_expected === 'number' ? streaming.cache_len_expected : null,
    sentences: sentencesOf(file),
    tolerances: tolerancesOf(file),
    ignored: ignoredFields(content, file),
  });
}

const boundsOf = (
  given: { readonly min: number; readonly max: number } | readonly [number, number] | undefined,
): { min: number; max: number } | null => {
  if (given === undefined) return null;
  return 'min' in given ? { min: given.min, max: given.max } : { min: given[0], max: given[1] };
};

/** One rule for all state: the open axis of each output is filled up to the number its input has there. */
function paddings({ encoder, streaming }: WholeModelFile): ReadonlyMap<string, StatedPadding> {
  const { side = 'right', value = 0 } = streaming?.cache_pad ?? {};
  return new Map(
    encoder.streaming_io.outputs.map(({ name }) => [
      name,
      { axis: null, capacity: null, side, fillValue: value },
    ]),
  );
}

/** "dynamic" means only that the length is not one number. */
const sentencesOf = ({ streaming }: WholeModelFile): readonly string[] =>
  [streaming?.cache_len_expected, streaming?.cache_len_behavior].flatMap((stated) =>
    typeof stated === 'string' && stated !== 'dynamic' ? [`state length: ${stated}`] : [],
  );

function profilesOf(
  path: string,
  { encoder, trt }: WholeModelFile,
): { name: string; dimensions: ReadonlyMap<string, DimensionRange> }[] {
  const given = trt?.profiles?.encoder_streaming;
  if (given === undefined) return [];
  if (Array.isArray(given))
    return given.map(({ name, audio_signal_T: frames, batch }, at) => ({
      name: name ?? `profile ${at}`,
      dimensions: new Map([
        ...(frames === undefined ? [] : ([['audio_signal.T', frames]] as const)),
        ...(batch === undefined ? [] : ([['B', batch]] as const)),
      ]),
    }));
  return [{ name: 'encoder_streaming', dimensions: dimensionsOf(path, encoder.streaming_io.inputs, given) }];
}

/** Shapes of a profile as ranges of the symbols they stand at. */
function dimensionsOf(
  path: string,
  inputs: readonly Binding[],
  { min, opt, max }: z.infer<typeof profileMap>,
): ReadonlyMap<string, DimensionRange> {
  const dimensions = new Map<string, DimensionRange>();
  for (const { name, shape } of inputs) {
    const [low, middle, high] = [min[name], opt[name], max[name]];
    if (low === undefined || middle === undefined || high === undefined) continue;
    (shape ?? []).forEach((size, axis) => {
      const ends = [low[axis], middle[axis], high[axis]] as const;
      if (ends.some((end) => end === undefined))
        throw contractInvalid(path, `the profile of ${name} has another rank than its shape`);
      if (typeof size === 'string')
        dimensions.set(`${name}.${size}`, { min: ends[0]!, opt: ends[1]!, max: ends[2]! });
    });
  }
  return dimensions;
}

function tolerancesOf({ encoder, trt }: WholeModelFile): Contract['tolerances'] {
  const { ort, trt: engine } = trt?.tolerances ?? {};
  const own = [
    { tensor: 'cache_last_time_out', absolute: ort?.cache_last_time_atol },
    { tensor: 'encoder_output', absolute: engine?.encoder_output_p100_max_abs },
  ].flatMap(({ tensor, absolute }) =>
    absolute !== undefined && encoder.streaming_io.outputs.some(({ name }) => name === tensor)
      ? [{ tensor, absolute, relative: null }]
      : [],
  );
  return [...toleranceOfAll(ort && { atol: ort.default_atol, rtol: ort.default_rtol }), ...own];
}
