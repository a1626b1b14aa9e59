import type { Weight } from '../../formats/onnx/weight.js';
import { comparePairs } from '../../formats/tensor/compare/comparison.js';
import { compareExactly } from '../../formats/tensor/compare/exact-comparison.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import { floatReader } from '../../formats/tensor/float-reader.js';
import type { TensorReader } from '../../formats/tensor/tensor-reader.js';
import { measure } from '../verify/result.js';
import type { WeightDistance } from './result.js';

const NO_TOLERANCE = { absolute: 0, relative: 0 };

/** The distance of b's values from a's, read piece by piece. Null where the shapes differ, and for text and complex numbers. */
export function distanceOf(a: Weight, b: Weight): WeightDistance | null {
  if (a.dims.join() !== b.dims.join() || !isNumeric(a) || !isNumeric(b)) return null;
  const [reference, candidate] = [streamedTensor(a), streamedTensor(b)];
  const { elements } = a;
  if (isWideInteger(a) || isWideInteger(b)) {
    const { different, largest, worst } = compareExactly(candidate, reference, 'the weight', 1);
    const [place] = worst;
    return {
      elements,
      different,
      maxAbs: measure(largest),
      worst: place === undefined ? null : indicesOf(place.index, a.dims),
      maxRelative: null,
      sqnr: null,
    };
  }
  const pairs = { candidate: floatReader(candidate), reference: floatReader(reference) };
  const { absolute, relative, outside, signalToNoise } = comparePairs(pairs, NO_TOLERANCE, 'none');
  return {
    elements,
    different: outside,
    maxAbs: measure(absolute.max),
    worst: absolute.maxIndex < 0 ? null : indicesOf(absolute.maxIndex, a.dims),
    maxRelative: measure(relative.max),
    sqnr: measure(signalToNoise),
  };
}

const isNumeric = ({ dtype }: Weight): boolean => !['string', 'complex'].includes(dtypes[dtype].kind);

const isWideInteger = ({ dtype }: Weight): boolean => dtype === 'int64' || dtype === 'uint64';

function indicesOf(index: number, dims: readonly number[]): number[] {
  let rest = index;
  return dims
    .toReversed()
    .map((size) => {
      const at = rest % size;
      rest = Math.floor(rest / size);
      return at;
    })
    .reverse();
}

/** A weight as a tensor that is read from its beginning to its end: reading an earlier place begins again. */
function streamedTensor(weight: Weight): TensorReader {
  let chunks: Iterator<Uint8Array> | undefined;
  let chunk: Uint8Array = new Uint8Array();
  let start = 0;
  return {
    dtype: weight.dtype,
    shape: weight.dims,
    readBytes: (position, target) => {
      if (chunks === undefined || position < start) {
        chunks = weight.chunks()[Symbol.iterator]();
        [chunk, start] = [new Uint8Array(), 0];
      }
      for (let done = 0; done < target.length; ) {
        const from = position + done - start;
        if (from >= chunk.length) {
          const next = chunks.next();
          if (next.done === true) return;
          start += chunk.length;
          chunk = next.value;
          continue;
        }
        const part = chunk.subarray(from, from + target.length - done);
        target.set(part, done);
        done += part.length;
      }
    },
  };
}
