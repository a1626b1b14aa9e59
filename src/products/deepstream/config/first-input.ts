import type { NamedAxes } from '../../../engines/profiles/profile.js';
import type { FindingCode } from './findings.js';

type Fault = readonly [code: FindingCode, key: string, message: string];

/** The types of inputs and outputs that nvinfer has a name for (getLayerInfo). */
const types: readonly string[] = 'float32 float16 int32 int64 int8 uint8 bool'.split(' ');

/** The images that nvinfer passes to the first input. */
interface Pictures {
  /** Of infer-dims; undefined where it is not set, and the first dimension behind the batch counts, in NHWC too. */
  readonly channels: number | undefined;
  /** model-color-format: RGB, BGR, GRAY. */
  readonly color: number;
  /** Number of offsets; 0: none that count. */
  readonly offsets: number;
}

/** Faults of the image input that nvinfer would reject or fill wrongly, in its order (initInferenceInfo, preparePreprocess). */
export function faultsOfInput(
  { inputs, outputs }: NamedAxes,
  { color, offsets, ...given }: Pictures,
): readonly Fault[] {
  const faults: Fault[] = [];
  for (const { name, dtype } of [...inputs, ...outputs])
    if (dtype !== null && !types.includes(dtype))
      faults.push(['type-unknown', 'model-engine-file', `nvinfer does not know ${dtype}, of ${name}.`]);
  const [first] = inputs;
  if (first !== undefined && (first.dtype ?? 'float32') !== 'float32')
    faults.push([
      'input-type',
      'model-engine-file',
      `nvinfer writes FP32 into the ${first.dtype} ${first.name}.`,
    ]);
  const rank = first?.shape?.length ?? 4;
  if (rank !== 4)
    faults.push([
      'input-rank',
      'model-engine-file',
      `${first?.name} has ${rank} dimensions, with the batch.`,
    ]);
  const channels = given.channels ?? (rank === 4 ? first?.shape?.[1] : undefined);
  const wanted = color === 2 ? 1 : 3;
  if (typeof channels === 'number' && channels !== wanted) {
    const why = `nvinfer counts ${channels} channels of the network, and model-color-format=${color} has ${wanted}.`;
    faults.push(['color-format', 'model-color-format', why]);
  }
  if (typeof channels === 'number' && offsets > 0 && offsets !== channels)
    faults.push(['offsets-count', 'offsets', `There are ${offsets} offsets, and ${channels} channels.`]);
  return faults;
}
