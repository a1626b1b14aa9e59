import { TrtforgeError } from '../errors.js';
import type { EngineBinding } from '../runtime/engine-interface.js';
import type { Dtype } from '../tensor/dtype.js';
import { elementCount, packedBytes } from '../tensor/dtype.js';
import { readNpy } from '../tensor/npy.js';
import { isRandomDtype, type RandomStream, randomStream, randomTensor, type Spread } from '../tensor/random.js';
import { isIntegerDtype } from '../tensor/values.js';
import type { NativeHostData, NativeShape } from '../toolchain/native-engine.js';
import { inDtype } from '../verify/inputs.js';
import type { InputWish } from './request.js';

/** Bytes for every device input: files where given, else seeded random numbers. Throws TF_SESSION_INPUT and what reading a file throws. */
export function engineInputs(
  inputs: readonly EngineBinding[],
  shapes: readonly NativeShape[],
  wish: InputWish,
): readonly NativeHostData[] {
  for (const { name } of [...wish.files, ...wish.ranges]) {
    if (name === null || inputs.some((input) => input.name === name)) continue;
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `There is no input ${name}; the inputs are ${inputs.map((input) => input.name).join(', ')}.`,
    );
  }
  return inputs
    .filter((input) => !input.hostValues)
    .map((input) => {
      const shape = shapes.find(({ name }) => name === input.name)?.shape ?? [];
      return { name: input.name, data: inputBytes(input, shape, wish) };
    });
}

function inputBytes(input: EngineBinding, shape: readonly number[], wish: InputWish): Uint8Array {
  const file = wish.files.find(({ name }) => name === input.name);
  if (file !== undefined) return fileBytes(input, shape, file.path);
  const stream = randomStream(wish.seed, input.name);
  const { dtype } = input;
  if (!isRandomDtype(dtype)) return packedRandom(dtype, shape, stream);
  const asked =
    wish.ranges.find(({ name }) => name === input.name) ?? wish.ranges.find(({ name }) => name === null);
  const spread: Spread =
    asked === undefined ? usualSpread(dtype) : { kind: 'uniform', low: asked.low, high: asked.high };
  return randomTensor(dtype, shape, spread, stream).bytes;
}

/** A plan does not say what an input means: integers are 0 and 1, which index any table and count little; floats are as trtexec's. */
const usualSpread = (dtype: Dtype): Spread => ({
  kind: 'uniform',
  low: isIntegerDtype(dtype) ? 0 : -1,
  high: 1,
});

function fileBytes(input: EngineBinding, shape: readonly number[], path: string): Uint8Array {
  const tensor = inDtype(input, readNpy(path), path);
  if (tensor.shape.join('x') !== shape.join('x')) {
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `${path} is [${tensor.shape.join(', ')}], but the input ${input.name} is measured at [${shape.join(', ')}].`,
    );
  }
  return tensor.bytes;
}

/** Types without an array of their own, as bytes that are numbers of small magnitude in each. */
function packedRandom(dtype: Dtype, shape: readonly number[], stream: RandomStream): Uint8Array {
  const bytes = new Uint8Array(packedBytes(dtype, elementCount(shape)));
  // E8M0: 127 is 1. FP8: without the highest exponent bit nothing is infinite, NaN or above 2.
  const byte =
    dtype === 'float8_e8m0fnu'
      ? () => 127
      : dtype.startsWith('float8')
        ? () => stream.bits() & 0xbf
        : () => stream.bits() & 0xff;
  for (let at = 0; at < bytes.length; at++) bytes[at] = byte();
  return bytes;
}
