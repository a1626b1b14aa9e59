import { TrtforgeError } from '../../../errors.js';
import { comparePairs } from '../../../formats/tensor/compare/comparison.js';
import { type Dtype, elementCount } from '../../../formats/tensor/dtype.js';
import { floatReader } from '../../../formats/tensor/float-reader.js';
import { randomStream } from '../../../formats/tensor/random.js';
import { copiedTensor, type NamedTensors, type Tensor } from '../../../formats/tensor/tensor.js';
import { tensorReader } from '../../../formats/tensor/tensor-reader.js';
import { float32Values, floatTensor } from '../../../formats/tensor/values.js';

/** How much an output moves when one input is disturbed. */
export interface Sensitivity {
  readonly input: string;
  readonly output: string;
  readonly effects: readonly {
    readonly perturbation: string;
    readonly maxAbs: number;
    readonly meanAbs: number;
  }[];
  readonly maxEffect: number;
  /** Below 1e-5 the input is not used; below 1e-3 it hardly matters; above, it does. */
  readonly says: 'not-used' | 'weakly-sensitive' | 'strongly-sensitive';
}

/** Types that noise can be added to. */
export const isDisturbable = (dtype: Dtype): dtype is 'float32' | 'float16' | 'bfloat16' =>
  dtype === 'float32' || dtype === 'float16' || dtype === 'bfloat16';

const NOISE = [0.1, 0.2, 0.3] as const;

/**
 * Runs one chunk as it is, with the input zeroed, and with normal noise of 0.1, 0.2 and 0.3 added, and says how far the output moves. A state that is not
 * used explains why a wrong one does no harm, and why a right one is not proven right. Throws TF_SESSION_INPUT for inputs of other types.
 */
export async function sensitivityTo(
  input: string,
  output: string,
  inputs: NamedTensors,
  run: (inputs: NamedTensors) => Promise<NamedTensors>,
): Promise<Sensitivity> {
  const tensor = inputs.get(input);
  if (tensor === undefined || !isDisturbable(tensor.dtype))
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `${input} is no floating-point input, so it cannot be disturbed.`,
    );
  const undisturbed = copiedTensor(outputOf(await run(inputs), output));
  const effects: Sensitivity['effects'][number][] = [];
  const zeros = { ...tensor, bytes: new Uint8Array(tensor.bytes.length) };
  const disturbed: readonly (readonly [string, Tensor])[] = [
    ['zeros', zeros],
    ...NOISE.map((sigma) => [`noise ${sigma}`, noisy(tensor, sigma)] as const),
  ];
  for (const [perturbation, instead] of disturbed) {
    const moved = outputOf(await run(new Map([...inputs, [input, instead]])), output);
    const { absolute } = comparePairs(
      { candidate: floatReader(tensorReader(moved)), reference: floatReader(tensorReader(undisturbed)) },
      { absolute: 0, relative: 0 },
      'none',
    );
    effects.push({ perturbation, maxAbs: absolute.max, meanAbs: absolute.mean });
  }
  const maxEffect = Math.max(...effects.map(({ maxAbs }) => maxAbs));
  const says = maxEffect < 1e-5 ? 'not-used' : maxEffect < 1e-3 ? 'weakly-sensitive' : 'strongly-sensitive';
  return { input, output, effects, maxEffect, says };
}

function outputOf(outputs: NamedTensors, name: string): Tensor {
  const tensor = outputs.get(name);
  if (tensor !== undefined) return tensor;
  throw new TrtforgeError(
    'TF_SESSION_INPUT',
    `There is no output ${name}; there is ${[...outputs.keys()].join(', ')}.`,
  );
}

function noisy(tensor: Tensor, sigma: number): Tensor {
  const stream = randomStream(0, `noise ${sigma}`);
  const values = new Float32Array(elementCount(tensor.shape));
  const original = float32Values(tensor);
  for (let at = 0; at < values.length; at++) values[at] = original[at]! + sigma * stream.normal();
  return floatTensor(tensor.dtype as 'float32', tensor.shape, values);
}
