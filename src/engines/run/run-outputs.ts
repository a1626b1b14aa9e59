import { join } from 'node:path';
import { statIfThere } from '../../base/files/files.js';
import { TrtforgeError } from '../../errors.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import { writeNpy } from '../../formats/tensor/npy.js';
import { writeNpz } from '../../formats/tensor/npz.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { numbersOf } from '../../formats/tensor/values.js';
import { npyFileName } from './npy-name.js';
import type { RunResult } from './run-result.js';

type RunOutput = RunResult['outputs'][number];

/** Throws TF_USAGE for a place that looks like one file and is none that holds all outputs: it would become a folder of that name. */
export function checkPlace(place: string | undefined): void {
  if (place === undefined || !/\.(npy|json|safetensors)$/i.test(place)) return;
  if (statIfThere(place)?.isDirectory() === true) return;
  throw new TrtforgeError('TF_USAGE', `Outputs cannot be written to ${place}.`, {
    remedy: 'Give a folder (one npy for each output) or a file that ends in .npz.',
  });
}

/** Writes outputs as one npz, or one npy each into a folder, and says of each what is in it. */
export function writeOutputs(tensors: NamedTensors, place: string | undefined): RunOutput[] {
  const isArchive = /\.npz$/i.test(place ?? '');
  if (place !== undefined && isArchive) writeNpz(place, tensors);
  return [...tensors].map(([name, tensor]) => {
    const file = place === undefined ? null : isArchive ? place : join(place, npyFileName(name));
    if (file !== null && !isArchive) writeNpy(file, tensor);
    return { ...describeTensor(name, tensor), file };
  });
}

function describeTensor(name: string, tensor: Tensor): Omit<RunOutput, 'file'> {
  const { dtype, shape } = tensor;
  const numbers = numbersOf(tensor, name);
  let [min, max, sum, nan, infinite] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0, 0];
  for (let at = 0; at < numbers.length; at++) {
    const value = numbers[at]!;
    if (value - value === 0) {
      if (value < min) min = value;
      if (value > max) max = value;
      sum += value;
    } else if (Number.isNaN(value)) nan++;
    else infinite++;
  }
  const finite = numbers.length - nan - infinite;
  return {
    name,
    dtype,
    shape: [...shape],
    elements: elementCount(shape),
    min: finite === 0 ? null : min,
    max: finite === 0 ? null : max,
    mean: finite === 0 ? null : sum / finite,
    nan,
    infinite,
  };
}
