import type { FindingCode } from './findings.js';

/** Inputs and outputs, of a passport or a model. */
export interface Ports {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
}

interface Port {
  readonly name: string;
  readonly dtype: string | null;
  readonly shape: readonly (number | string | null)[] | null;
}

type Fault = readonly [code: FindingCode, key: string, message: string];

/** The types of inputs and outputs that nvinfer has a name for (getLayerInfo). */
const types: readonly string[] = 'float32 float16 int32 int64 int8 uint8 bool'.split(' ');

/** What nvinfer would not take, or fill wrongly, of what it gives pictures to. */
export function faultsOfInput({ inputs, outputs }: Ports): readonly Fault[] {
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
  return faults;
}
