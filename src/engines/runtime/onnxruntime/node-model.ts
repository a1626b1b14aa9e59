import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { TrtforgeError } from '../../../errors.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import { type ElementArray, elementsOf, isArrayDtype, type Tensor } from '../../../formats/tensor/tensor.js';
import { firstLine, type OrtModel, unsupported } from './ort-model.js';
import type { OrtOpen } from './ort-protocol.js';

/** A model on onnxruntime-node's binding: on the CPU, where the addon is not compiled. Throws TF_ONNXRUNTIME_MISSING, TF_ONNXRUNTIME_FAILED. */
export async function openNodeModel(request: OrtOpen): Promise<OrtModel> {
  const { modelPath, weightsFolder, threads, isFloat8, isPlain } = request;
  const ort = await loadOrt();
  // By path: from a buffer the model and its weights would be in memory twice, and 2 GiB is the end.
  const model = weightsFolder === undefined ? modelPath : readFileSync(modelPath);
  const settings = {
    ...(weightsFolder === undefined ? {} : { model_external_initializers_file_folder_path: weightsFolder }),
    // Packed weights are a second copy, and are summed in another order than computed ones.
    ...(isPlain ? { disable_prepacking: '1', intra_op: { allow_spinning: '0' } } : {}),
  };
  const session = await inOrt(() =>
    ort.InferenceSession.create(model as string, {
      executionProviders: ['cpu'],
      logSeverityLevel: 3,
      extra: { session: settings },
      ...(isPlain || isFloat8
        ? { graphOptimizationLevel: isPlain ? ('disabled' as const) : ('basic' as const) }
        : {}),
      ...(threads === null ? {} : { intraOpNumThreads: threads }),
    }),
  );
  const require = createRequire(import.meta.url);
  const { version } = require('onnxruntime-node/package.json') as { version: string };
  return {
    facts: { version, buildInfo: null, tensorrt: null },
    placement: () => null,
    bind: (inputs) => {
      const feeds = Object.fromEntries(inputs.map(([name, tensor]) => [name, toOrt(ort, name, tensor)]));
      let results: Awaited<ReturnType<InferenceSession['run']>> = {};
      return {
        run: async () => {
          results = await inOrt(() => session.run(feeds));
        },
        outputs: () =>
          Object.entries(results).map(([name, tensor]) => [name, fromOrt(name, tensor)] as const),
      };
    },
    close: () => session.release(),
  };
}

/** The message is ONNX Runtime's own: the parent knows what the user calls the model. */
async function inOrt<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    throw new TrtforgeError('TF_ONNXRUNTIME_FAILED', firstLine(cause), { cause });
  }
}

function toOrt(runtime: Ort, name: string, tensor: Tensor): OrtTensor {
  const { dtype } = tensor;
  if (!isArrayDtype(dtype)) throw unsupported(name, dtype);
  const elements = elementsOf({ ...tensor, dtype });
  return new runtime.Tensor(dtype as 'float32', elements as Float32Array, [...tensor.shape]);
}

function fromOrt(name: string, tensor: OrtTensor): Tensor {
  const dtype = tensor.type in dtypes ? (tensor.type as Dtype) : undefined;
  if (dtype === undefined || !isArrayDtype(dtype)) throw unsupported(name, tensor.type);
  // Halves come as Uint16Array or, on newer Node, as Float16Array: their bytes are the same.
  const { buffer, byteOffset, byteLength } = tensor.data as ElementArray;
  return { dtype, shape: [...tensor.dims], bytes: new Uint8Array(buffer, byteOffset, byteLength) };
}

type Ort = typeof import('onnxruntime-node');

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
