import { basename, dirname, join } from 'node:path';
import { namesIn, readJson, statIfThere } from '../../../base/files/files.js';
import type { Passport } from '../../../engines/identity/passport.js';
import { TrtforgeError } from '../../../errors.js';
import { labelsOfMetadata, readLabels } from '../../../formats/images/labels.js';
import type { ModelFacts } from '../../../formats/onnx/model-facts.js';

/** The one model of DeepStream's layout `models/NAME/model/`, of an engine below `models/NAME/`; undefined where there is not exactly one. */
export function modelOfEngine(engine: string): string | undefined {
  const [, root] = /^(.*\/models\/[^/]+)\/(?!model\/)./.exec(engine) ?? [];
  if (root === undefined) return undefined;
  const models = namesIn(join(root, 'model')).filter((name) => name.endsWith('.onnx'));
  return models.length === 1 ? join(root, 'model', models[0]!) : undefined;
}

/** Names of classes: `--labels`, else config.json beside the model, else what the exporter left in it; undefined where there are none. */
export function labelsOf(
  given: string | undefined,
  file: string,
  metadata: ModelFacts['metadata'],
): readonly string[] | undefined {
  if (given !== undefined) return readLabels(given);
  const { id2label, label2id, names } = besideModel(file, 'config.json');
  const byIndex = isRecord(id2label)
    ? Object.entries(id2label).map(([index, name]) => [Number(index), name] as const)
    : isRecord(label2id)
      ? Object.entries(label2id).map(([name, index]) => [Number(index), name] as const)
      : [...Object.entries(names ?? {})].map(([index, name]) => [Number(index), name] as const);
  byIndex.sort(([a], [b]) => a - b);
  if (byIndex.length === 0) return labelsOfMetadata(metadata);
  const isList = byIndex.every(([index, name], at) => index === at && typeof name === 'string');
  if (isList) return byIndex.map(([, name]) => String(name));
  throw new TrtforgeError(
    'TF_SERVING_REFUSED',
    `config.json beside ${basename(file)} does not name each class.`,
    {
      remedy: 'Pass --labels with a name a line.',
    },
  );
}

/** How pictures become the input, in the terms of nvinfer. */
export interface Preparation {
  readonly scale: number;
  readonly offsets: readonly number[];
  readonly color: 'rgb' | 'bgr';
  readonly fit: 'stretch' | 'letterbox' | 'corner';
  /** Height and width that the files beside the model state. */
  readonly size: readonly [number, number] | null;
  readonly assumed: string | null;
  readonly warning: string | null;
}

/** What the exporter left in the model (Ultralytics), else preprocessor_config.json beside it (Hugging Face), else the usual: values from 0 to 1, which is reported. */
export function preparationOf(file: string, metadata: ModelFacts['metadata']): Preparation {
  const usual = {
    scale: 1 / 255,
    offsets: [],
    color: 'rgb',
    size: null,
    assumed: null,
    warning: null,
  } as const;
  const isUltralytics = metadata.stride !== undefined && metadata.task !== undefined;
  if (isUltralytics) {
    const [, height, width] = /^\[(\d+), (\d+)\]$/.exec(metadata.imgsz ?? '') ?? [];
    const size = height === undefined ? null : ([Number(height), Number(width)] as const);
    return { ...usual, size, fit: 'letterbox' };
  }
  const given = besideModel(file, 'preprocessor_config.json');
  if (given.image_mean === undefined && given.do_rescale === undefined)
    return {
      ...usual,
      fit: 'stretch',
      assumed:
        'Pictures as RGB from 0 to 1, stretched: no file beside the model states how they are prepared.',
    };
  const rescale = given.do_rescale === false ? 1 : (numberIn(given.rescale_factor) ?? 1 / 255);
  const [means, stds] = [listIn(given.image_mean), listIn(given.image_std)];
  const isNormalised = given.do_normalize !== false && means.length === 3 && stds.length === 3;
  const { height, width } = isRecord(given.size) ? given.size : {};
  const size = numberIn(height) && numberIn(width) ? ([Number(height), Number(width)] as const) : null;
  const std = stds.reduce((sum, each) => sum + each / stds.length, 0);
  const hasOneStd = stds.every((each) => each === stds[0]);
  return {
    ...usual,
    scale: isNormalised ? rescale / std : rescale,
    offsets: isNormalised ? means.map((mean) => mean / rescale) : [],
    fit: size === null && given.do_pad !== false ? 'corner' : 'stretch',
    size,
    warning:
      isNormalised && !hasOneStd
        ? `nvinfer has one scale for all channels: the mean ${std.toPrecision(4)} stands for the deviations ${stds.join(', ')}.`
        : null,
  };
}

function besideModel(file: string, name: string): Record<string, unknown> {
  const path = join(dirname(file), name);
  const content = statIfThere(path) === undefined ? {} : readJson(path);
  return isRecord(content) ? content : {};
}

/** Of profile 0, at its usual sizes, with the batch; open dimensions are null. */
export const engineShape = ({ plan, identity }: Passport): readonly (number | null)[] | null => {
  const [first] = plan.inputs;
  return identity.document.recipe.profiles[0]?.[first?.name ?? '']?.opt ?? first?.shape ?? null;
};

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const numberIn = (value: unknown) =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : undefined;
const listIn = (value: unknown): readonly number[] =>
  Array.isArray(value)
    ? value.filter((each): each is number => typeof each === 'number' && Number.isFinite(each))
    : [];
