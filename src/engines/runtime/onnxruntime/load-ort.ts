import { TrtforgeError } from '../../../errors.js';
import { firstLine } from './ort-model.js';

export type Ort = typeof import('onnxruntime-node');

/**
 * On Node 24 and later onnxruntime-common picks Float16Array for halves while the native side still wants 16-bit integers, and every half input
 * fails. The choice is made once, at the first tensor: while that one is made, Float16Array is hidden. https://github.com/microsoft/onnxruntime/pull/32323
 */
export async function loadOrt(): Promise<Ort> {
  const global = globalThis as { Float16Array?: unknown };
  const hidden = global.Float16Array;
  try {
    delete global.Float16Array;
    const loaded = await import('onnxruntime-node');
    new loaded.Tensor('float16', new Uint16Array(1), [1]);
    return loaded;
  } catch (cause) {
    throw new TrtforgeError('TF_ONNXRUNTIME_MISSING', `ONNX Runtime cannot be loaded: ${firstLine(cause)}`, {
      cause,
    });
  } finally {
    if (hidden !== undefined) global.Float16Array = hidden;
  }
}
