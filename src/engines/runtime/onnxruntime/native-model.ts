import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadAddon } from '../../../addon/addon.js';
import {
  loadOnnxRuntime,
  type NativeOnnxRuntime,
  type NativeOrtOutput,
  type NativeOrtSession,
} from '../../../addon/onnx-runtime.js';
import { removeIfAllowed } from '../../../base/files/files.js';
import { makeScratch } from '../../../base/files/folders.js';
import { TrtforgeError } from '../../../errors.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import type { Tensor } from '../../../formats/tensor/tensor.js';
import { howToInstall, missingLibraries, providerNames } from './find-library.js';
import { firstLine, type OrtModel, unsupported } from './ort-model.js';
import type { OrtInputs, OrtNative, OrtOpen, OrtPlacement } from './ort-protocol.js';
import { placementOf, rejectFallback } from './provider-fallback.js';

/** The first version that reports which provider took a node; before, the record of a run does. */
const REPORTS_PLACEMENT = 24;
/** Of <driver_types.h>: cudaErrorMemoryAllocation. */
const CUDA_OUT_OF_MEMORY = '2';

/**
 * A model on ONNX Runtime's C interface. Throws TF_LIBRARY_…, TF_ONNXRUNTIME_MISSING with every library that is missing, TF_USAGE for a provider's option, TF_GPU_UNAVAILABLE,
 * TF_GPU_MEMORY, TF_PROVIDER_FALLBACK, TF_ONNXRUNTIME_FAILED.
 */
export async function openNativeModel(request: OrtOpen, native: OrtNative): Promise<OrtModel> {
  const runtime = loadOnnxRuntime();
  const { library, provider, allowFallback } = native;
  const { version } = runtime.probe(library);
  const isRecorded = provider !== 'cpu' && Number(version.split('.')[1]) < REPORTS_PLACEMENT;
  const recordFolder = isRecorded ? makeScratch('profile') : null;
  const discard = () => recordFolder !== null && removeIfAllowed(recordFolder);
  if (recordFolder !== null) process.once('exit', discard);
  const recordPrefix = recordFolder === null ? null : join(recordFolder, 'first-run');
  const session = await openSession(runtime, request, native, recordPrefix);
  let placement: OrtPlacement = null;
  const place = (nodes: NativeOrtSession['placement']) => {
    placement = placementOf(nodes, provider);
    rejectFallback(placement, provider, allowFallback);
  };
  if (provider !== 'cpu' && recordFolder === null) place(session.placement);
  return {
    facts: {
      version,
      buildInfo: session.buildInfo,
      tensorrt: provider === 'tensorrt' ? tensorrtHere() : null,
    },
    placement: () => placement,
    bind: (inputs, { state, resident }) => {
      const outputs = new Map(state.map(([input, output]) => [output, input]));
      const call = session.bind({
        inputs: inputs.map(nativeInput),
        outputs: native.outputs.map((name) => ({ name, feeds: outputs.get(name) ?? null })),
        resident,
      });
      return {
        run: async () => {
          await call.run();
          if (recordFolder === null || placement !== null) return;
          // Only versions before 1.24 come here: a child of a later one starts without zod.
          const { nodesInProfile } = await import('./ort-profile.js');
          const nodes = nodesInProfile(readFileSync(session.endProfiling(), 'utf8'));
          discard();
          place(nodes);
        },
        outputs: () => call.outputs().map((output) => [output.name, tensorOf(output)] as const),
      };
    },
    close: () => session.close().done,
  };
}

/** The record of the first run goes to a file whose name begins with `profilePrefix`; null: no record. Throws what `whyNot` returns. */
async function openSession(
  runtime: NativeOnnxRuntime,
  { modelPath, weightsFolder, threads }: OrtOpen,
  native: OrtNative,
  profilePrefix: string | null,
): Promise<NativeOrtSession> {
  try {
    return await runtime.open({ ...native, modelPath, weightsFolder, threads: threads ?? 0, profilePrefix })
      .done;
  } catch (error) {
    throw whyNot(error, native, runtime);
  }
}

const nativeInput = ([name, { dtype, shape, bytes }]: OrtInputs[number]) => ({
  name,
  type: dtypes[dtype].onnx,
  shape,
  bytes,
});

const names = new Map(Object.entries(dtypes).map(([name, { onnx }]) => [onnx as number, name as Dtype]));

function tensorOf({ name, type, shape, data }: NativeOrtOutput): Tensor {
  const dtype = names.get(type);
  if (dtype === undefined) throw unsupported(name, `of ONNX type ${type}`);
  return { dtype, shape, bytes: new Uint8Array(data) };
}

/** The TensorRT that the provider loaded: its library is found by name now. */
function tensorrtHere(): string | null {
  try {
    return loadAddon().probe('libnvinfer.so.10').version;
  } catch {
    return null;
  }
}

/** The error of a provider or of the GPU, as one that states the cause; other errors as they are. */
function whyNot(
  error: unknown,
  { library, provider, device }: OrtNative,
  runtime: NativeOnnxRuntime,
): unknown {
  if (!(error instanceof TrtforgeError) || provider === 'cpu') return error;
  const text = firstLine(error);
  const name = providerNames[provider];
  if (error.code === 'TF_ONNXRUNTIME_MISSING') {
    const missing = missingLibraries(library, provider, runtime);
    const reason = missing.length > 0 ? `${missing.join(', ')} cannot be loaded` : text;
    return new TrtforgeError(error.code, `ONNX Runtime cannot load its ${name} provider: ${reason}.`, {
      remedy: howToInstall(provider),
      details: { library, missing },
      cause: error,
    });
  }
  const noDevice = /Invalid device ID: [^.]+/.exec(text)?.[0];
  if (noDevice !== undefined)
    return new TrtforgeError('TF_GPU_UNAVAILABLE', `ONNX Runtime cannot use GPU ${device}: ${noDevice}.`, {
      cause: error,
    });
  // Between the place in ONNX Runtime's sources and the machine's name is CUDA's own message; a GPU that is missing is found in reading the options.
  const [failure, number] = /CUDA failure (\d+): [^;]+/.exec(text) ?? [];
  if (failure !== undefined) {
    const code = number === CUDA_OUT_OF_MEMORY ? 'TF_GPU_MEMORY' : 'TF_GPU_UNAVAILABLE';
    return new TrtforgeError(code, `ONNX Runtime cannot use GPU ${device}: ${failure.trim()}.`, {
      cause: error,
    });
  }
  if (error.code === 'TF_USAGE')
    return new TrtforgeError(
      'TF_USAGE',
      `ONNX Runtime rejects the options of its ${name} provider: ${text}`,
      {
        remedy: 'Pass other values with --provider-option.',
        cause: error,
      },
    );
  const [, operator, node] = /Provider type for (\S+) node with name '([^']*)' is not set/.exec(text) ?? [];
  if (operator !== undefined)
    return new TrtforgeError(
      'TF_ONNXRUNTIME_FAILED',
      `neither its ${name} provider nor the CPU has a kernel for the types of node "${node}" (${operator}).`,
      {
        remedy: 'Pass --provider cpu, which computes 16-bit types in float32, or convert to FP16.',
        cause: error,
      },
    );
  return error;
}
