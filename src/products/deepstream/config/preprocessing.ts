import { dirname, join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../../base/files/files.js';
import { preprocessings } from '../../../formats/images/preprocess.js';

/** The preparation of an image for the input, in the terms of nvinfer: scale * (level - offset). */
export interface Preparation {
  readonly scale: number;
  readonly offsets: readonly number[];
  readonly color: 'rgb' | 'bgr' | 'gray';
  /** `letterbox` pads on both sides, `corner` right and below alone. */
  readonly fit: 'stretch' | 'letterbox' | 'corner';
}

/** By model-color-format. */
export const colors: readonly Preparation['color'][] = ['rgb', 'bgr', 'gray'];

/** `key=value` of nvinfer, a line each. */
export function preparationKeys({ scale, offsets, color, fit }: Preparation): readonly string[] {
  const rounded = offsets.map((offset) => Number(offset.toPrecision(9)));
  return [
    `net-scale-factor=${Number(scale.toPrecision(15))}`,
    ...(offsets.length === 0 ? [] : [`offsets=${rounded.join(';')}`]),
    `model-color-format=${colors.indexOf(color)}`,
    `maintain-aspect-ratio=${fit === 'stretch' ? 0 : 1}`,
    `symmetric-padding=${fit === 'letterbox' ? 1 : 0}`,
  ];
}

/** The settings that Hugging Face writes beside a model, as far as nvinfer can do the same. */
const preprocessorSchema = z.object({
  do_rescale: z.boolean().optional(),
  do_normalize: z.boolean().default(true),
  do_pad: z.boolean().default(true),
  rescale_factor: z
    .number()
    .positive()
    .default(1 / 255),
  image_mean: z.array(z.number()).length(3).optional(),
  image_std: z.array(z.number().positive()).length(3).optional(),
  size: z.object({ height: z.number(), width: z.number() }).nullable().catch(null),
});

interface KnownPreparation {
  readonly prepared: Preparation;
  /** Height and width. */
  readonly size: readonly [number, number] | null;
  readonly assumed?: string;
  readonly warning?: string;
}

/** The preparation of a passport, as nvinfer would do it; undefined for a name that is none. */
function preparationNamed(name: string): Preparation | undefined {
  const { mean, std, channels: color, fit } = preprocessings[name] ?? {};
  if (mean === undefined || std === undefined || color === undefined || fit === undefined) return undefined;
  const deviation = std.reduce((sum, each) => sum + each / std.length, 0);
  const offsets = mean.some((each) => each > 0) ? mean.map((each) => each * 255) : [];
  // nvinfer cuts nothing away.
  return { scale: 1 / (255 * deviation), offsets, color, fit: fit === 'crop' ? 'stretch' : fit };
}

/** In which keys of nvinfer a preparation differs from the one of the passport, in one sentence; undefined where it does not, or none is stated. */
export function differsFromPassport(prepared: Preparation, name: string | undefined): string | undefined {
  const known = name === undefined ? undefined : preparationNamed(name);
  if (known === undefined || prepared.color === 'gray') return undefined;
  const rounded = (each: Preparation) =>
    preparationKeys({
      ...each,
      scale: Number(each.scale.toPrecision(4)),
      offsets: each.offsets.map(Math.round),
    });
  const own = rounded(prepared);
  const other = rounded(known).filter((key) => !own.includes(key));
  if (other.length === 0 && prepared.offsets.length === known.offsets.length) return undefined;
  return `The calibration prepared pictures as "${name}": ${other.join(', ') || 'without offsets'}.`;
}

/** The preparation by passport, else model metadata (Ultralytics), else preprocessor_config.json beside it (Hugging Face), else 0 to 1, reported. */
export function knownPreparation(
  file: string,
  metadata: Readonly<Record<string, string>>,
  preprocess: string | undefined,
): KnownPreparation {
  const named = preprocess === undefined ? undefined : preparationNamed(preprocess);
  if (named !== undefined) {
    const { prepared, size, assumed } = knownPreparation(file, metadata, undefined);
    const other = assumed === undefined ? differsFromPassport(prepared, preprocess) : undefined;
    const isCut = preprocessings[preprocess!]!.fit === 'crop';
    const warnings = [
      ...(other === undefined ? [] : [`${other} The model's files state otherwise.`]),
      ...(isCut
        ? [`"${preprocess}" takes the middle of a picture, which nvinfer does not: it is stretched.`]
        : []),
    ];
    return { prepared: named, size, ...(warnings.length > 0 && { warning: warnings.join(' ') }) };
  }
  const usual = { scale: 1 / 255, offsets: [], color: 'rgb', fit: 'stretch' } as const;
  if (metadata.stride !== undefined && metadata.task !== undefined) {
    const [, height, width] = /^\[(\d+), (\d+)\]$/.exec(metadata.imgsz ?? '') ?? [];
    const size = height === undefined ? null : ([Number(height), Number(width)] as const);
    return { prepared: { ...usual, fit: 'letterbox' }, size };
  }
  const { data } = preprocessorSchema.safeParse(readJson(join(dirname(file), 'preprocessor_config.json')));
  if (data?.image_mean === undefined && data?.do_rescale === undefined)
    return {
      ...{ prepared: usual, size: null },
      assumed: 'Pictures as RGB from 0 to 1, stretched: no file beside the model states their preparation.',
    };
  const { image_mean: means, image_std: stds } = data;
  const size = data.size && ([data.size.height, data.size.width] as const);
  const fit = size === null && data.do_pad ? 'corner' : 'stretch';
  const rescale = data.do_rescale === false ? 1 : data.rescale_factor;
  if (!data.do_normalize || means === undefined || stds === undefined)
    return { prepared: { ...usual, fit, scale: rescale }, size };
  const std = stds.reduce((sum, each) => sum + each / stds.length, 0);
  const offsets = means.map((mean) => mean / rescale);
  const mixed = `nvinfer has one scale for all channels: the mean ${std.toPrecision(4)} of ${stds.join(', ')}.`;
  return {
    prepared: { ...usual, fit, scale: rescale / std, offsets },
    ...{ size, warning: new Set(stds).size > 1 ? mixed : undefined },
  };
}
