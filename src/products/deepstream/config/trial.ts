import { openSession } from '../../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { readImage } from '../../../formats/images/image.js';
import { channelsLast, preprocess } from '../../../formats/images/preprocess.js';
import { imageLayout } from '../../../formats/onnx/image-layout.js';
import { float32Values, floatTensor, type Tensor } from '../../../formats/tensor/tensor.js';
import { type Layout, layoutOf } from './detector-outputs.js';
import { type Preparation, preparationKeys } from './preprocessing.js';
import type { DeepstreamCheck } from './result.js';
import type { NvinferSettings } from './settings.js';

type Trial = NonNullable<DeepstreamCheck['trial']>;
type Scores = Trial['asConfigured'];

/** A score from which a detection counts. */
const PLAUSIBLE = 0.25;
/** By how much another preprocessing must be better to be named. */
const CLEARLY = 0.15;

/** Runs the model on one image, prepared as nvinfer would and in the usual other ways. Throws TF_USAGE without a model whose outputs are known, what reading and running throw. */
export async function tryPreprocessing(
  settings: NvinferSettings,
  model: string | null,
  image: string,
  context: WorkContext,
): Promise<Trial> {
  const rejected = (why: string) =>
    new TrtforgeError('TF_USAGE', `--image cannot be tried: ${why}.`, { remedy: 'Remove --image.' });
  if (model === null) throw rejected('the configuration names no onnx-file');
  await using session = await openSession(model, {}, context);
  const layout = layoutOf(session.outputs);
  const [input] = session.inputs;
  const axes = imageLayout(input?.shape ?? null);
  if (layout === undefined || input === undefined || axes === null || input.shape?.[axes.channels] === 1)
    throw rejected('the model is not a detector of coloured pictures that trtforge knows');
  const [, ...given] = settings.inferDims;
  const [height = 0, width = 0] = [axes.height, axes.width].map((axis, index) => {
    const dim = input.shape![axis];
    return typeof dim === 'number' && dim > 0 ? dim : given[index];
  });
  if (width < 1 || height < 1) throw rejected('infer-dims does not set the size of the input');

  const picture = await readImage(image);
  const scoresOf = async (prepared: Preparation): Promise<Scores> => {
    const { tensor } = preprocess(picture, { ...preprocessingOf(prepared), width, height });
    const planes = axes.layout === 'NHWC' ? channelsLast(tensor) : tensor;
    const isFloat = input.dtype === 'float32';
    const fed = isFloat ? planes : floatTensor(input.dtype as 'float16', planes.shape, float32Values(planes));
    const outputs = await session.run(new Map([[input.name, fed]]), { signal: context.signal });
    const preprocessing = preparationKeys(prepared).join(' ');
    return { preprocessing, ...scoresIn(outputs.get(layout.scores)!, layout) };
  };
  const configured = configuredPreparation(settings);
  const asConfigured = await scoresOf(configured);
  const alternatives: Scores[] = [];
  for (const prepared of otherWays(configured)) alternatives.push(await scoresOf(prepared));
  alternatives.sort((a, b) => b.highest - a.highest);
  judge(settings, { image, asConfigured, alternatives });
  return { image, asConfigured, alternatives };
}

function judge(settings: NvinferSettings, { image, asConfigured, alternatives: [best] }: Trial): void {
  const { highest } = asConfigured;
  const isLow = highest < PLAUSIBLE;
  const reached = `The highest score on ${image} is ${highest.toFixed(2)}`;
  if (best !== undefined && best.highest >= PLAUSIBLE && best.highest > highest + CLEARLY) {
    const message = `${reached}, and ${best.highest.toFixed(2)} with ${best.preprocessing}.`;
    settings.add('preprocessing-doubtful', 'net-scale-factor', message, isLow ? undefined : 'warning');
  } else if (isLow)
    settings.add('scores-low', 'net-scale-factor', `${reached}; no usual preprocessing gives clearly more.`);
}

export function configuredPreparation(settings: NvinferSettings): Preparation {
  const padded = settings.isSet('symmetric-padding') ? 'letterbox' : 'corner';
  return {
    scale: settings.number('net-scale-factor', 1),
    offsets: settings.list<number>('offsets'),
    color: settings.number('model-color-format') === 1 ? 'bgr' : 'rgb',
    fit: settings.isSet('maintain-aspect-ratio') ? padded : 'stretch',
  };
}

/** The usual scales in both orders of colours, and the configured one fitted in other ways; each once. */
function otherWays(configured: Preparation): readonly Preparation[] {
  const scales = [
    configured,
    { scale: 1 / 255, offsets: [] },
    { scale: 1, offsets: [] },
    { scale: 1 / 127.5, offsets: [127.5, 127.5, 127.5] },
    { scale: 0.0173520735727919, offsets: [123.675, 116.28, 103.53] },
  ];
  const ways = [
    ...(['rgb', 'bgr'] as const).flatMap((color) =>
      scales.map(({ scale, offsets }) => ({ ...configured, scale, offsets, color })),
    ),
    ...(['stretch', 'letterbox', 'corner'] as const).map((fit) => ({ ...configured, fit })),
  ];
  const byKeys = new Map(ways.map((prepared) => [preparationKeys(prepared).join(), prepared]));
  byKeys.delete(preparationKeys(configured).join());
  return [...byKeys.values()];
}

function preprocessingOf({ scale, offsets, color, fit }: Preparation) {
  const mean = (channel: number) => (offsets[channel] ?? 0) / 255;
  const std = 1 / (255 * scale);
  return {
    ...{ summary: '', pad: 0, corner: fit === 'corner' },
    fit: fit === 'stretch' ? fit : ('letterbox' as const),
    channels: color === 'bgr' ? color : ('rgb' as const),
    mean: [mean(0), mean(1), mean(2)] as const,
    std: [std, std, std] as const,
  };
}

/** Scores lie in columns behind the box, in rows, or in one column. */
function scoresIn(tensor: Tensor, { kind }: Layout): Pick<Scores, 'highest' | 'candidates'> {
  const values = float32Values(tensor);
  const [, first = 0, second = 0] = tensor.shape;
  const scores =
    kind === 'end-to-end'
      ? Float32Array.from({ length: first }, (_, row) => values[row * second + 4]!)
      : values.subarray(kind === 'boxes' ? 4 * second : 0, first * second);
  const isLogits = kind === 'detr' || scores.some((value) => value < -0.01 || value > 1.01);
  const all = isLogits ? scores.map((value) => 1 / (1 + Math.exp(-value))) : scores;
  return {
    highest: all.reduce((most, score) => Math.max(most, score), 0),
    candidates: all.filter((score) => score >= PLAUSIBLE).length,
  };
}
