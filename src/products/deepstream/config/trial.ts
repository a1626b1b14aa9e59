import { openSession } from '../../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { readImage } from '../../../formats/images/image.js';
import { channelsLast, type Preprocessing, preprocess } from '../../../formats/images/preprocess.js';
import { imageLayout } from '../../../formats/onnx/image-layout.js';
import type { Tensor } from '../../../formats/tensor/tensor.js';
import { float32Values, floatTensor } from '../../../formats/tensor/values.js';
import type { DeepstreamCheck } from './check-result.js';
import { type Layout, layoutOf } from './layout.js';
import type { NvinferSettings } from './settings.js';

type Trial = NonNullable<DeepstreamCheck['trial']>;
type Scores = Trial['asConfigured'];

/** nvinfer's: scale * (level - offset). */
interface Normalisation {
  readonly scale: number;
  readonly offsets: readonly number[];
  readonly channels: 'rgb' | 'bgr';
  readonly letterbox: boolean;
}

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
  const [, ...given] = settings.list<number>('infer-dims');
  const [height = 0, width = 0] = [axes.height, axes.width].map((axis, index) => {
    const dim = input.shape![axis];
    return typeof dim === 'number' && dim > 0 ? dim : given[index];
  });
  if (width < 1 || height < 1) throw rejected('infer-dims does not set the size of the input');

  const picture = await readImage(image);
  const corner = !settings.isSet('symmetric-padding');
  const scoresOf = async (how: Normalisation): Promise<Scores> => {
    const { tensor } = preprocess(picture, { ...preprocessingOf(how), width, height, corner });
    const planes = axes.layout === 'NHWC' ? channelsLast(tensor) : tensor;
    const isFloat = input.dtype === 'float32';
    const fed = isFloat ? planes : floatTensor(input.dtype as 'float16', planes.shape, float32Values(planes));
    const outputs = await session.run(new Map([[input.name, fed]]), { signal: context.signal });
    return { preprocessing: textOf(how), ...scoresIn(outputs.get(layout.scores)!, layout) };
  };
  const configured: Normalisation = {
    scale: settings.number('net-scale-factor', 1),
    offsets: settings.list<number>('offsets'),
    channels: settings.number('model-color-format', 0) === 1 ? 'bgr' : 'rgb',
    letterbox: settings.isSet('maintain-aspect-ratio'),
  };
  const asConfigured = await scoresOf(configured);
  const alternatives: Scores[] = [];
  for (const how of otherWays(configured))
    if (textOf(how) !== asConfigured.preprocessing) alternatives.push(await scoresOf(how));
  alternatives.sort((a, b) => b.highest - a.highest);
  judge(settings, { image, asConfigured, alternatives });
  return { image, asConfigured, alternatives };
}

function judge(settings: NvinferSettings, { image, asConfigured, alternatives: [best] }: Trial): void {
  const { highest } = asConfigured;
  const where = settings.where('net-scale-factor');
  const reached = `The highest score on ${image} is ${highest.toFixed(2)}`;
  const isBetter = best !== undefined && best.highest >= PLAUSIBLE && best.highest > highest + CLEARLY;
  if (isBetter)
    settings.findings.add(
      'preprocessing-doubtful',
      where,
      `${reached}, and ${best.highest.toFixed(2)} with ${best.preprocessing}.`,
      highest < PLAUSIBLE ? 'error' : 'warning',
    );
  else if (highest < PLAUSIBLE)
    settings.findings.add('scores-low', where, `${reached}, and no usual preprocessing gives clearly more.`);
}

/** The usual scales and colours, and the configured ones with the other fit. */
function otherWays(configured: Normalisation): readonly Normalisation[] {
  const scales = [
    configured,
    { scale: 1 / 255, offsets: [] },
    { scale: 1, offsets: [] },
    { scale: 1 / 127.5, offsets: [127.5, 127.5, 127.5] },
    { scale: 0.0173520735727919, offsets: [123.675, 116.28, 103.53] },
  ];
  const colours = ['rgb', 'bgr'] as const;
  return [
    ...scales.flatMap(({ scale, offsets }) =>
      colours.map((channels) => ({ ...configured, scale, offsets, channels })),
    ),
    { ...configured, letterbox: !configured.letterbox },
  ];
}

function preprocessingOf({ scale, offsets, channels, letterbox }: Normalisation) {
  const mean = (channel: number) => (offsets[channel] ?? 0) / 255;
  const std = 1 / (255 * scale);
  return {
    summary: '',
    fit: letterbox ? 'letterbox' : 'stretch',
    pad: 0,
    channels,
    mean: [mean(0), mean(1), mean(2)],
    std: [std, std, std],
  } satisfies Partial<Preprocessing>;
}

const textOf = ({ scale, offsets, channels, letterbox }: Normalisation): string =>
  [
    `net-scale-factor=${Number(scale.toPrecision(9))}`,
    ...(offsets.length === 0 ? [] : [`offsets=${offsets.join(';')}`]),
    `model-color-format=${channels === 'rgb' ? 0 : 1}`,
    `maintain-aspect-ratio=${letterbox ? 1 : 0}`,
  ].join(' ');

/** Scores lie in columns behind the box, in rows, or in one column. */
function scoresIn(tensor: Tensor, { kind }: Layout): Pick<Scores, 'highest' | 'candidates'> {
  const values = float32Values(tensor);
  const [, first = 0, second = 0] = tensor.shape;
  const isEnd = kind === 'end-to-end';
  const scores = isEnd
    ? Float32Array.from({ length: first }, (_, row) => values[row * second + 4]!)
    : values.subarray(kind === 'boxes' ? 4 * second : 0, first * second);
  const isLogits = kind === 'detr' || scores.some((value) => value < -0.01 || value > 1.01);
  const all = isLogits ? scores.map((value) => 1 / (1 + Math.exp(-value))) : scores;
  return {
    highest: all.reduce((most, score) => Math.max(most, score), 0),
    candidates: all.filter((score) => score >= PLAUSIBLE).length,
  };
}
