import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SupervisedSession, startSupervised } from '../../../base/process/supervised-session.js';
import { TrtforgeError } from '../../../errors.js';
import { type EventListener, ignoreEvents } from '../../../events.js';
import { assertWellTyped } from '../../../formats/onnx/dtype-inference.js';
import { isExternal } from '../../../formats/onnx/external-data.js';
import { visitTensors } from '../../../formats/onnx/graph.js';
import { type OnnxModel, openModel } from '../../../formats/onnx/model.js';
import type { ModelProto } from '../../../formats/onnx/onnx_pb.js';
import { isPlaceholder } from '../../../formats/onnx/open-dimensions.js';
import { feedInputs, valueFacts } from '../../../formats/onnx/value-facts.js';
import { writeModel } from '../../../formats/onnx/write.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import { shapesOption } from '../../../formats/tensor/shape-text.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { float32Values, floatTensor, isArrayDtype, tensorFrom } from '../../../formats/tensor/values.js';
import { checkDevice } from '../../../tensorrt/addon/chosen-gpu.js';
import type { Arithmetic, Pace, PacedRuns, RepeatedRun } from '../back-end.js';
import type { Binding, RunOptions, Session } from '../session.js';
import { checkInputs } from '../session-inputs.js';
import { cudaEnvironment, isTf32Allowed, loaderWatch } from './ort-cuda.js';
import type { OrtAnswer, OrtCuda, OrtOpened, OrtPlacement, OrtRequest } from './ort-protocol.js';
import { type OrtPlace, ortBackend } from './ort-provider.js';
import { isWide, type Rounding, roundInFloat32 } from './rounded-model.js';

/** ONNX Runtime rejects larger files, as protobuf does; it takes the same model with its weights in a file of their own. */
const LARGEST_PROTOBUF = 2 ** 31 - 1;

const CHILD = new URL('../../../../dist/engines/runtime/onnxruntime/ort-child.js', import.meta.url);

export interface OrtSessionOptions extends OrtPlace {
  /** What messages call the model; default: its path. For copies that the user has never seen. */
  readonly givenModel?: string;
  /** Threads within one operator; default one a processor core. */
  readonly threads?: number;
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
  /** Default: this process's. */
  readonly environment?: NodeJS.ProcessEnv;
}

/** A session on ONNX Runtime, in a process of its own: what crashes there is an error here, and its memory comes back when it is closed. */
export interface OrtSession extends Session {
  /** Set when the model has 16-bit values and runs on the CPU, where they are computed in float32 and rounded (see rounded-model.ts). CUDA has them as they are. */
  readonly rounding: Rounding | undefined;
  /** On CUDA `fp32` only with TF32 off in cuBLAS and cuDNN. */
  readonly arithmetic: Arithmetic;
  /** Which nodes of the first run were on the GPU and which on the CPU; null before it, and for sessions on the CPU. */
  placement(): Promise<OrtPlacement>;
  /** Runs the same inputs again and again and times each run in the process it happens in: tensors cross once, and no time of theirs is in it. */
  measure(inputs: NamedTensors, pace: Pace, options?: RunOptions): Promise<PacedRuns>;
  /** Runs the same inputs so many times, each timed in the process it happens in. */
  runRepeatedly(
    inputs: NamedTensors,
    options: RunOptions & { readonly iterations: number },
  ): Promise<RepeatedRun>;
}

/**
 * Loads an ONNX model, by path, into ONNX Runtime, on the CPU unless CUDA is requested. There is no fallback from CUDA to the CPU: where it cannot be used
 * that is an error. Throws TF_USAGE (a device that is no ordinal), TF_ONNXRUNTIME_MISSING, TF_ONNXRUNTIME_FAILED, TF_SESSION_BINDING (an input or output of a type
 * that cannot cross: int4, float8, sequences; bfloat16 on CUDA), TF_ONNX_GRAPH_INVALID, TF_CHILD_DIED, and what opening a model throws; for CUDA TF_PLATFORM_UNSUPPORTED and
 * TF_GPU_UNAVAILABLE, the latter also in the first run where every node of it was left on the CPU.
 */
export async function openOrtSession(path: string, options: OrtSessionOptions = {}): Promise<OrtSession> {
  const given = options.givenModel ?? path;
  checkDevice(options.device);
  const prepared = await prepare(path, given, options);
  const isCuda = options.provider === 'cuda';
  const { environment: base = process.env } = options;
  const environment = isCuda ? cudaEnvironment(base) : base;
  const watch = loaderWatch(options.emit ?? ignoreEvents);
  const cuda = isCuda ? cudaOn(options.device ?? 0) : null;
  const child = startSupervised(CHILD, {
    emit: watch.emit,
    env: environment,
    doing: `running ${given} on ONNX Runtime`,
    // A run cannot be interrupted, so there is nothing to wait for.
    graceMs: 200,
  });
  const close = async () => {
    await child.close();
    if (cuda !== null) rmSync(cuda.profileFolder, { recursive: true, force: true });
  };
  try {
    const threads = options.threads ?? null;
    const request: OrtRequest = { kind: 'open', modelPath: prepared.path, threads, cuda };
    const { version } = (await child.request(request, options.signal).catch((error: unknown) => {
      throw notLoaded(error, given, prepared.path);
    })) as OrtOpened;
    const tf32 = isCuda && isTf32Allowed(environment);
    return sessionOver(
      { child, close, given },
      tf32 && prepared.arithmetic === 'fp32' ? { ...prepared, arithmetic: 'tf32' } : prepared,
      ortBackend(version, options, tf32),
    );
  } catch (error) {
    // The child's last lines are read when it is closed, and the loader's message is among them.
    await close();
    throw watch.explain(error);
  } finally {
    prepared.discard();
  }
}

const cudaOn = (device: number): OrtCuda => ({
  device,
  profileFolder: mkdtempSync(join(tmpdir(), 'trtforge-profile-')),
});

interface Prepared {
  /** The model file to load: the user's own, or a copy that is rounded, or has its weights beside it, or its shapes inside. */
  readonly path: string;
  readonly inputs: readonly Binding[];
  readonly outputs: readonly Binding[];
  readonly rounding: Rounding | undefined;
  readonly arithmetic: Arithmetic;
  discard(): void;
}

async function prepare(path: string, given: string, options: OrtSessionOptions): Promise<Prepared> {
  const model = openModel(path);
  try {
    assertWellTyped(path, model.proto);
    const isCuda = options.provider === 'cuda';
    const { inputs, outputs } = bindingsOf(given, model, isCuda);
    const rounding = isCuda ? undefined : roundInFloat32(model.proto);
    const arithmetic: Arithmetic = isCuda
      ? isWide(model.proto)
        ? 'fp32'
        : 'mixed'
      : rounding === undefined
        ? 'fp32'
        : 'rounded';
    const facts = { inputs, outputs, rounding, arithmetic };
    const isTooLarge = statSync(path).size > LARGEST_PROTOBUF;
    if (rounding === undefined && !isTooLarge && !hasShapesOutside(model.proto))
      return { path, ...facts, discard: () => {} };
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-model-'));
    const discard = () => rmSync(folder, { recursive: true, force: true });
    const copy = join(folder, 'model.onnx');
    try {
      await writeModel(
        model,
        copy,
        {
          externalData: isTooLarge ? 'always' : 'auto',
          signal: options.signal,
        },
        options.emit,
      );
    } catch (error) {
      discard();
      throw error;
    }
    return { path: copy, ...facts, discard };
  } finally {
    model.close();
  }
}

/** Shapes (an input of Reshape, Expand, …) in another file: ONNX Runtime infers shapes before it reads external data, and rejects the model. */
function hasShapesOutside(proto: ModelProto): boolean {
  for (const { tensor } of visitTensors(proto))
    if (isExternal(tensor) && tensor.dataType === dtypes.int64.onnx && tensor.dims.length <= 1) return true;
  return false;
}

function bindingsOf(path: string, model: OnnxModel, isCuda: boolean): Pick<Prepared, 'inputs' | 'outputs'> {
  const graph = model.proto.graph;
  const binding =
    (what: string) =>
    (value: Parameters<typeof valueFacts>[0]): Binding => {
      const { name, dtype, shape } = valueFacts(value);
      if (dtype === null || !(dtype in dtypes) || !isArrayDtype(dtype as Dtype)) {
        throw new TrtforgeError(
          'TF_SESSION_BINDING',
          `The ${what} ${name} of ${path} is ${dtype ?? 'of no declared type'}, which cannot be passed to ONNX Runtime.`,
        );
      }
      if (isCuda && dtype === 'bfloat16') {
        throw new TrtforgeError(
          'TF_SESSION_BINDING',
          `The ${what} ${name} of ${path} is bfloat16, which cannot be passed to ONNX Runtime on CUDA.`,
          { remedy: 'Use --provider cpu, where it is computed in float32 and rounded, or build an engine.' },
        );
      }
      const unnamed = (dim: number | string | null) =>
        typeof dim === 'string' && isPlaceholder(dim) ? null : dim;
      return { name, dtype: dtype as Dtype, shape: shape?.map(unnamed) ?? null };
    };
  return {
    inputs: graph === undefined ? [] : feedInputs(graph).map(binding('input')),
    outputs: (graph?.output ?? []).map(binding('output')),
  };
}

function sessionOver(
  {
    child,
    close,
    given,
  }: { readonly child: SupervisedSession; readonly close: () => Promise<void>; readonly given: string },
  { inputs, outputs, rounding, arithmetic }: Prepared,
  backend: string,
): OrtSession {
  const widened = rounding !== undefined;
  const feedsOf = (tensors: NamedTensors) => {
    checkInputs(inputs, tensors);
    return [...tensors].map(([name, tensor]): [string, Tensor] => [name, widened ? widen(tensor) : tensor]);
  };
  const asked = (request: OrtRequest & { readonly inputs: Feeds }, { signal }: RunOptions) =>
    child.request(request, signal).catch((error: unknown) => {
      throw notRun(error, given, inputs, request.inputs);
    });
  const runRepeatedly: OrtSession['runRepeatedly'] = async (tensors, { iterations, ...options }) => {
    const request: OrtRequest = { kind: 'run', inputs: feedsOf(tensors), iterations };
    const answer = (await asked(request, options)) as OrtAnswer;
    return { outputs: inDeclaredTypes(answer.outputs, outputs), ms: answer.ms };
  };
  return {
    backend,
    inputs,
    outputs,
    rounding,
    arithmetic,
    placement: async () => (await child.request({ kind: 'placement' } satisfies OrtRequest)) as OrtPlacement,
    run: async (tensors, options = {}) =>
      (await runRepeatedly(tensors, { ...options, iterations: 1 })).outputs,
    runRepeatedly,
    measure: async (tensors, pace, options = {}) => {
      const request: OrtRequest = { kind: 'measure', inputs: feedsOf(tensors), pace };
      return (await asked(request, options)) as PacedRuns;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

type Feeds = (OrtRequest & { kind: 'run' })['inputs'];

/** ONNX Runtime's message about a file, with the user's name for it in the place of a copy's. */
function notLoaded(error: unknown, given: string, loaded: string): unknown {
  if (!isOrtFailure(error)) return error;
  return new TrtforgeError(
    error.code,
    `ONNX Runtime cannot load ${given}: ${error.message.replaceAll(loaded, given)}`,
    { cause: error },
  );
}

/** A file that loads is not broken: what does not suit it are the shapes or the values of its inputs, so these are named. */
function notRun(error: unknown, given: string, inputs: readonly Binding[], feeds: Feeds): unknown {
  if (!isOrtFailure(error)) return error;
  const fed = feeds.map(([name, { shape }]) => ({ name, shape: [...shape] }));
  const open = fed.filter(({ name, shape }) => {
    const declared = inputs.find((input) => input.name === name)?.shape;
    return shape.some((_, axis) => typeof declared?.[axis] !== 'number');
  });
  const values = '--inputs NAME=@FILE.npy';
  return new TrtforgeError(
    error.code,
    `ONNX Runtime cannot run ${given} with ${fed.map(({ name, shape }) => `${name} [${shape.join(', ')}]`).join(', ')}: ${error.message}`,
    {
      cause: error,
      remedy:
        open.length === 0
          ? `Pass values that the model takes: ${values}.`
          : `Pass other shapes than ${shapesOption(open)}, or tensors that the model takes: ${values}.`,
      details: { inputs: fed },
    },
  );
}

const isOrtFailure = (error: unknown): error is TrtforgeError =>
  error instanceof TrtforgeError && error.code === 'TF_ONNXRUNTIME_FAILED';

const isHalf = (dtype: Dtype): dtype is 'float16' | 'bfloat16' => dtype === 'float16' || dtype === 'bfloat16';

const widen = (tensor: Tensor): Tensor =>
  isHalf(tensor.dtype) ? tensorFrom('float32', tensor.shape, float32Values(tensor)) : tensor;

/** Outputs that were computed in float32 go back to the type the model declares; the values are representable, so nothing is lost. */
function inDeclaredTypes(answer: OrtAnswer['outputs'], outputs: readonly Binding[]): NamedTensors {
  const answered = new Map(answer);
  const typed = new Map<string, Tensor>();
  for (const { name, dtype } of outputs) {
    const tensor = answered.get(name);
    if (tensor === undefined) throw new TrtforgeError('TF_INTERNAL', `ONNX Runtime gave no output ${name}.`);
    const rounded = isHalf(dtype) && tensor.dtype === 'float32';
    typed.set(name, rounded ? floatTensor(dtype, tensor.shape, float32Values(tensor)) : tensor);
  }
  return typed;
}
