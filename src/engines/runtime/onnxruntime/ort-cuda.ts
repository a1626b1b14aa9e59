import { toBinary } from '@bufbuild/protobuf';
import { TrtforgeError } from '../../../errors.js';
import type { EventListener } from '../../../events.js';
import { buildModel, GraphBuilder } from '../../../formats/onnx/builder.js';
import { ModelProtoSchema } from '../../../formats/onnx/onnx_pb.js';
import { firstLine, type Ort } from './load-ort.js';

const TF32_SWITCH = 'NVIDIA_TF32_OVERRIDE';

/**
 * What a process with the CUDA provider is started with. onnxruntime-node passes no option but the device, so `use_tf32` cannot be set; cuBLAS and
 * cuDNN heed this variable above every setting of a program. A value that the user set is kept. https://docs.nvidia.com/cuda/cublas/
 */
export const cudaEnvironment = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...environment,
  [TF32_SWITCH]: environment[TF32_SWITCH] ?? '0',
});

export const isTf32Allowed = (environment: NodeJS.ProcessEnv): boolean => environment[TF32_SWITCH] !== '0';

/**
 * Opens and closes a session of one node on the GPU, so that what is wrong with CUDA is distinguished from what is wrong with a model. `folder` is where
 * onnxruntime-node is. Throws TF_PLATFORM_UNSUPPORTED, TF_ONNXRUNTIME_MISSING, TF_GPU_UNAVAILABLE.
 */
export async function probeCuda(ort: Ort, device: number, folder: string): Promise<void> {
  if (!ort.listSupportedBackends().some(({ name }) => name === 'cuda')) {
    throw new TrtforgeError(
      'TF_PLATFORM_UNSUPPORTED',
      `onnxruntime-node has no CUDA provider for ${process.platform} ${process.arch}.`,
      { remedy: 'It has one for Linux on x64; elsewhere use --provider cpu.' },
    );
  }
  const graph = new GraphBuilder('probe');
  graph.input('x', 'float32', [1]);
  graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
  graph.output('y', 'float32', [1]);
  try {
    const session = await ort.InferenceSession.create(toBinary(ModelProtoSchema, buildModel(graph).proto), {
      executionProviders: [{ name: 'cuda', deviceId: device }],
      logSeverityLevel: 3,
    });
    await session.release();
  } catch (cause) {
    throw whyNot(firstLine(cause), device, folder);
  }
}

/** ONNX Runtime throws one sentence where a library is missing, and prints the loader's text; see `loaderWatch`. */
function whyNot(words: string, device: number, folder: string): TrtforgeError {
  if (/Failed to load shared library/.test(words)) {
    return new TrtforgeError(
      'TF_ONNXRUNTIME_MISSING',
      `ONNX Runtime cannot load its CUDA provider: ${words}`,
      {
        remedy: `The provider's libraries are fetched by ONNXRUNTIME_NODE_INSTALL=cuda12 node ${folder}/script/install.js; they need CUDA 12 and cuDNN 9 on the loader's path (LD_LIBRARY_PATH). For CUDA 13 take them from PyPI's onnxruntime-gpu of the same version. Without them: --provider cpu.`,
      },
    );
  }
  // Between the place in ONNX Runtime's sources and the machine's name is CUDA's own message.
  const reason = /CUDA failure \d+: [^;]+/.exec(words)?.[0] ?? words.split(' ; ')[0];
  return new TrtforgeError('TF_GPU_UNAVAILABLE', `ONNX Runtime cannot use GPU ${device}: ${reason?.trim()}.`);
}

/** Keeps the loader's message from the lines that a child prints, and puts it into the error of `probeCuda`. */
export function loaderWatch(emit: EventListener): {
  readonly emit: EventListener;
  explain(error: unknown): unknown;
} {
  let reason: string | undefined;
  return {
    emit: (event) => {
      if (event.type === 'log')
        reason ??= /Failed to load library \S+ with error: (?:\S*\/)?(.+)$/.exec(event.message)?.[1]?.trim();
      emit(event);
    },
    explain: (error) =>
      reason !== undefined && error instanceof TrtforgeError && error.code === 'TF_ONNXRUNTIME_MISSING'
        ? new TrtforgeError(error.code, `ONNX Runtime cannot load its CUDA provider: ${reason}.`, {
            remedy: error.remedy,
            cause: error,
          })
        : error,
  };
}
