import { existsSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { addonPath } from '../../../addon/addon.js';
import { checkDevice } from '../../../addon/gpus.js';
import { loadOnnxRuntime, type Setting } from '../../../addon/onnx-runtime.js';
import { canonicalJson, sha256 } from '../../../base/files/digest.js';
import { shapeText } from '../../../base/options/readers.js';
import { withLoaderPath } from '../../../base/process/command.js';
import { TrtforgeError } from '../../../errors.js';
import type { EventListener, WorkContext } from '../../../events.js';
import type { ObservingSession } from '../../../formats/precision/calibrate/calibrate.js';
import type { Dtype } from '../../../formats/tensor/dtype.js';
import {
  type ByName,
  float32Values,
  floatTensor,
  type NamedTensors,
  type Tensor,
  tensorFrom,
} from '../../../formats/tensor/tensor.js';
import type { Pace } from '../../../tensorrt/trtexec/options.js';
import { readModelContent } from '../../identity/model-content.js';
import type { Arithmetic, MeasureOptions, ModelRunOptions, PacedRuns, RepeatedRun } from '../back-end.js';
import { checkInputs, mapOf, rejectUnknown, wrong } from '../check-inputs.js';
import type { Binding, RunOptions, Session } from '../session.js';
import { chooseOrtLibrary, neighbourFolders, type OrtLibrary } from './find-library.js';
import type { OrtFacts } from './ort-facts.js';
import { type OrtChild, ortChild } from './ort-pool.js';
import type {
  OrtAnswer,
  OrtChildCall,
  OrtInputs,
  OrtNative,
  OrtOpen,
  OrtOpened,
  OrtPlacement,
  OrtState,
} from './ort-protocol.js';
import { type PreparedModel, prepareModel, type Rounding } from './prepared-model.js';
import { isOn, type OrtPlace, ortBackend, ortEnvironment, resolveProvider } from './provider-options.js';

/** The provider names the engines of its cache by the graph alone: those of two models, or of other options, would serve each other. */
async function cachePrefix(
  model: string,
  { provider, providerOptions = {}, ...work }: OrtSessionOptions,
  tf32: boolean,
): Promise<readonly Setting[]> {
  const { trt_engine_cache_enable: enabled, trt_engine_cache_prefix: prefix } = providerOptions;
  if (provider !== 'tensorrt' || !isOn(enabled) || prefix !== undefined) return [];
  const { digest } = await readModelContent(model, work);
  const { trt_engine_cache_path: _, ...deciding } = providerOptions;
  return [['trt_engine_cache_prefix', sha256(canonicalJson({ digest, deciding, tf32 })).slice(0, 16)]];
}

/** Where it is not, models run on the CPU through onnxruntime-node. */
const isAddonCompiled = (): boolean => process.platform === 'linux' && existsSync(addonPath);

interface OrtSessionOptions extends OrtPlace, WorkContext {
  /** The model's name in messages; default: its path. For copies that the user has never seen. */
  readonly givenModel?: string;
  /** Where the model's external data is; default: beside it. */
  readonly weightsFolder?: string;
  /** Threads within one operator; default one a processor core. */
  readonly threads?: number;
  /** Whether nodes run one by one as they stand; onnxruntime-node does that, on the CPU. */
  readonly isPlain?: boolean;
}

/**
 * For models with float8 codes: ONNX Runtime 1.30 leaves a Relu or Clip before a QuantizeLinear out, since uint8 codes are never negative, and fuses pairs into
 * operators that do not take float8. It takes the names of its own graph_optimizer_registry.
 */
const withoutRewriting = [
  [
    'optimization.disable_specified_optimizers',
    'QDQSelectorActionTransformer;ReluQuantRewrite;ClipQuantRewrite',
  ],
] as const;

/** A session on ONNX Runtime, in a process of its own: what crashes there is an error here, and its memory comes back when it is closed. */
export interface OrtSession extends Session, ObservingSession {
  /** Set when the model has 16-bit values and runs on the CPU, where they are computed in float32 and rounded (see prepared-model.ts). GPUs have them as they are. */
  readonly rounding: Rounding | undefined;
  /** On a GPU `fp32` only with TF32 off; `mixed` too where TensorRT was allowed to compute in 16 or 8 bits; `as-built` for a model that wraps an engine. */
  readonly arithmetic: Arithmetic;
  /** Of the process that runs it: `SupervisedSession.peakBytes`. */
  peakBytes(): number | null;
  /** The library that ran it, for results. */
  facts(): Promise<OrtFacts>;
  run(inputs: ByName<Tensor>, options?: ModelRunOptions): Promise<NamedTensors>;
  /** Runs the same inputs again and again and times each run in the process it happens in: tensors cross once, and no time of theirs is in it. */
  measure(inputs: NamedTensors, pace: Pace, options?: MeasureOptions): Promise<PacedRuns>;
  /** Runs the same inputs so many times, each timed in the process it happens in. */
  runRepeatedly(
    inputs: NamedTensors,
    options: RunOptions & { readonly iterations: number },
  ): Promise<RepeatedRun>;
}

/**
 * Loads an ONNX model, by path, into ONNX Runtime, on the CPU unless another provider is requested: through the addon, which speaks the C interface of any build of
 * ONNX Runtime, or through onnxruntime-node on the CPU where the addon is not compiled. A provider that cannot be used, or that does not take every node
 * (`allowFallback`), is an error. Throws TF_USAGE (a device that is no ordinal, an option that the provider does not have), TF_NATIVE_… for what needs the addon,
 * TF_ONNXRUNTIME_MISSING, TF_ONNXRUNTIME_FAILED, TF_LIBRARY_…, TF_SESSION_BINDING (an input or output of a type that cannot cross: int4, float8, sequences),
 * TF_ONNX_GRAPH_INVALID, TF_CHILD_DIED, and what opening a model throws; on a GPU TF_GPU_UNAVAILABLE, TF_GPU_MEMORY and TF_PROVIDER_FALLBACK, the last before 1.24 in
 * the first run.
 */
export async function openOrtSession(path: string, options: OrtSessionOptions = {}): Promise<OrtSession> {
  const { provider = 'cpu', environment: base = process.env, device = 0, allowFallback = false } = options;
  const given = options.givenModel ?? path;
  checkDevice(device);
  const resolved = resolveProvider(options, base);
  const library = options.isPlain === true ? null : libraryFor(options, base);
  const prepared = await prepareModel(path, given, options);
  const flags = prepared.precisionFlags.filter(([key]) => options.providerOptions?.[key] === undefined);
  const { arithmetic } = prepared;
  const named = arithmetic === 'as-built' ? [] : await cachePrefix(given, options, resolved.tf32);
  // The arithmetic of an engine was chosen when it was built, and it loads only where NVIDIA_TF32_OVERRIDE is as it was then.
  const { environment, tf32 } =
    arithmetic === 'as-built' ? { environment: ortEnvironment(base), tf32: null } : resolved;
  const isReusable = provider === 'cpu' && !prepared.drawsNumbers;
  const env = library === null ? environment : withLoaderPath(environment, neighbourFolders(library.path));
  const { child, reasons } = startChild(isReusable, given, env, options.emit);
  try {
    const settings = [...flags, ...named];
    const native = library && {
      library: library.path,
      provider,
      providers: withTensorrtSettings(resolved.providers, settings),
      config: prepared.isFloat8 ? [...withoutRewriting, ...resolved.config] : resolved.config,
      device,
      allowFallback,
      outputs: prepared.outputs.map(({ name }) => name),
    };
    const request = openRequest(prepared, options, native);
    const opened = (await child.request(request, options.signal).catch(async (error: unknown) => {
      throw notLoaded(await withReason(error, reasons), given, prepared.path);
    })) as OrtOpened;
    const isNarrow = resolved.narrow || flags.length > 0;
    return sessionOver({
      child,
      given,
      prepared: { ...prepared, arithmetic: arithmeticOn(arithmetic, isNarrow, tf32) },
      backend: ortBackend(opened.version, options, { tf32: tf32 === true, tensorrt: opened.tensorrt }),
      facts: {
        library: library?.path ?? 'onnxruntime-node',
        version: opened.version,
        buildInfo: opened.buildInfo,
        tensorrt: opened.tensorrt,
        provider,
        providerOptions: { ...options.providerOptions, ...Object.fromEntries(settings) },
        tf32,
      },
      isNative: library !== null,
      reasons,
    });
  } catch (error) {
    await child.close();
    throw error;
  } finally {
    prepared.discard();
  }
}

/** The process of a session. */
interface StartedChild {
  readonly child: OrtChild;
  /** Errors that TensorRT has logged so far. */
  readonly reasons: readonly string[];
}

function startChild(
  isReusable: boolean,
  given: string,
  env: NodeJS.ProcessEnv,
  emit: EventListener | undefined,
): StartedChild {
  const reasons: string[] = [];
  const child = ortChild(isReusable, {
    emit: (event) => {
      const reason = event.type === 'log' ? TENSORRT_ERROR.exec(event.message)?.[1] : undefined;
      if (reason !== undefined) reasons.push(reason);
      emit?.(event);
    },
    env,
    doing: `running ${given} on ONNX Runtime`,
    // An engine that TensorRT builds cannot be interrupted, so there is nothing to wait for.
    graceMs: 200,
  });
  return { child, reasons };
}

const withTensorrtSettings = (
  providers: OrtNative['providers'],
  settings: readonly Setting[],
): OrtNative['providers'] =>
  providers.map((appended) =>
    appended.name === 'tensorrt' ? { ...appended, options: [...appended.options, ...settings] } : appended,
  );

const openRequest = (
  { path, weightsFolder, isFloat8 }: PreparedModel,
  options: OrtSessionOptions,
  native: OrtNative | null,
): OrtOpen => ({
  kind: 'open',
  modelPath: path,
  weightsFolder,
  threads: options.threads ?? null,
  isFloat8,
  isPlain: options.isPlain === true,
  native,
});

/** The arithmetic of a model on its provider, which decides for FP32 models only. */
function arithmeticOn(ofModel: Arithmetic, isNarrow: boolean, tf32: boolean | null): Arithmetic {
  if (ofModel !== 'fp32') return ofModel;
  if (isNarrow) return 'mixed';
  return tf32 ? 'tf32' : 'fp32';
}

/** The library that the addon loads; null: onnxruntime-node's binding, on the CPU. */
function libraryFor(options: OrtSessionOptions, environment: NodeJS.ProcessEnv): OrtLibrary | null {
  const { provider = 'cpu', onnxRuntime, providerOptions = {} } = options;
  const needsAddon =
    provider !== 'cpu' || onnxRuntime !== undefined || Object.keys(providerOptions).length > 0;
  if (!needsAddon && !isAddonCompiled()) return null;
  if (needsAddon) loadOnnxRuntime();
  const library = chooseOrtLibrary(provider, onnxRuntime, environment);
  if (library === undefined && needsAddon)
    throw new TrtforgeError('TF_ONNXRUNTIME_MISSING', 'There is no libonnxruntime.so on this machine.');
  return library ?? null;
}

interface Opened extends StartedChild {
  readonly given: string;
  readonly prepared: PreparedModel;
  readonly backend: string;
  readonly facts: Omit<OrtFacts, 'placement'>;
  readonly isNative: boolean;
}

function sessionOver(opened: Opened): OrtSession {
  const { child, prepared, backend, facts, isNative } = opened;
  const { inputs, outputs, rounding, arithmetic } = prepared;
  const widened = rounding !== undefined;
  /** Inputs whose tensor a run before left on the device. */
  const kept = new Set<string>();
  const feedsOf = (tensors: NamedTensors): OrtInputs => {
    const needed = inputs.filter(({ name }) => !kept.has(name) || tensors.has(name));
    checkInputs(needed, tensors);
    return [...tensors].map(([name, tensor]): [string, Tensor] => [name, widened ? widen(tensor) : tensor]);
  };
  const ran = async (
    tensors: NamedTensors,
    iterations: number,
    options: ModelRunOptions,
  ): Promise<RepeatedRun> => {
    const state = Object.entries(options.state ?? {});
    if (state.length > 0 && !isNative) loadOnnxRuntime();
    checkState(state, prepared);
    const request: FedCall = { kind: 'run', inputs: feedsOf(tensors), iterations, state };
    const answer = (await answerOf(opened, request, options.signal)) as OrtAnswer;
    for (const [input] of state) kept.add(input);
    const fed = new Set(state.map(([, output]) => output));
    const returned = outputs.filter(({ name }) => !fed.has(name));
    return { outputs: inDeclaredTypes(answer.outputs, returned), ms: answer.ms };
  };
  return {
    backend,
    inputs,
    outputs,
    rounding,
    arithmetic,
    peakBytes: () => child.peakBytes(),
    facts: async () => {
      const placement = (await child.request({ kind: 'placement' } satisfies OrtChildCall)) as OrtPlacement;
      return { ...facts, placement };
    },
    run: async (passed, options = {}) => (await ran(mapOf('inputs', passed), 1, options)).outputs,
    runRepeatedly: (tensors, { iterations, ...options }) => ran(tensors, iterations, options),
    measure: async (tensors, pace, { transfers = true, ...options } = {}) => {
      const request: FedCall = { kind: 'measure', inputs: feedsOf(tensors), pace, resident: !transfers };
      return (await answerOf(opened, request, options.signal)) as PacedRuns;
    },
    observe: async (tensors, { histograms, channels, ...options }) => {
      const observing = { histograms, channels };
      const request: FedCall = { kind: 'observe', inputs: feedsOf(tensors), observing };
      return (await answerOf(opened, request, options.signal)) as Awaited<ReturnType<OrtSession['observe']>>;
    },
    observed: async () =>
      (await child.request({ kind: 'observed' } satisfies OrtChildCall)) as Awaited<
        ReturnType<OrtSession['observed']>
      >,
    close: () => child.close(),
    [Symbol.asyncDispose]: () => child.close(),
  };
}

type FedCall = Extract<OrtChildCall, { readonly inputs: OrtInputs }>;

/** The child's answer. Throws what the child throws; the message of TF_ONNXRUNTIME_FAILED has the shapes of the inputs. */
const answerOf = (
  { child, given, prepared, reasons }: Opened,
  request: FedCall,
  signal: AbortSignal | undefined,
): Promise<unknown> =>
  child.request(request, signal).catch(async (error: unknown) => {
    throw notRun(await withReason(error, reasons), given, prepared.inputs, request.inputs);
  });

/** Throws TF_SESSION_INPUT for a state of names that the model does not have, or of different types. */
function checkState(state: OrtState, { inputs, outputs }: PreparedModel): void {
  for (const [input, output] of state) {
    rejectUnknown(inputs, [input]);
    const from = outputs.find(({ name }) => name === output);
    if (from === undefined) throw wrong(`There is no output "${output}" that could become ${input}.`);
    const { dtype } = inputs.find(({ name }) => name === input)!;
    if (from.dtype !== dtype) throw wrong(`${input} is ${dtype}, ${output} is ${from.dtype}.`);
  }
}

/** TensorRT's own lines, as the provider logs them, without the colour's end. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal's escape
const TENSORRT_ERROR = /tensorrt_execution_provider.*?\bERROR\] (.+?)(?:\u001b\[m)?$/;

const NOT_BUILT = 'TensorRT EP failed to create engine';

/** The provider states only that an engine was not built; TensorRT's reason is in the log. */
async function withReason(error: unknown, reasons: readonly string[]): Promise<unknown> {
  if (!isOrtFailure(error) || !error.message.includes(NOT_BUILT)) return error;
  // Output that the child wrote before its answer is in the pipe by now.
  await setImmediate();
  const reason = reasons.at(-1);
  return new TrtforgeError(error.code, reason === undefined ? error.message : `${error.message} ${reason}`, {
    cause: error,
    remedy: '`trtforge build` shows whether TensorRT builds the model itself.',
  });
}

/** ONNX Runtime's message about a file, with the user's name for it in the place of a copy's. */
function notLoaded(error: unknown, given: string, loaded: string): unknown {
  if (!isOrtFailure(error)) return error;
  return new TrtforgeError(
    error.code,
    `ONNX Runtime cannot load ${given}: ${error.message.replaceAll(loaded, given)}`,
    {
      remedy: error.message.includes('Could not find an implementation')
        ? 'The file is valid, and this provider has no kernel for a type in it: build the model, and run the engine on its GPU.'
        : /Unsupported model IR version|under development and support for this is limited/.test(error.message)
          ? 'The file is newer than this ONNX Runtime: export it at an older opset, or take a newer ONNX Runtime (`trtforge doctor` shows which one is used).'
          : error.remedy,
      cause: error,
    },
  );
}

/** A file that loads is not broken: what does not suit it are the shapes or the values of its inputs, so these are named. */
function notRun(error: unknown, given: string, inputs: readonly Binding[], feeds: OrtInputs): unknown {
  if (!isOrtFailure(error)) return error;
  const fed = feeds.map(([name, { shape }]) => ({ name, shape: [...shape] }));
  const open = fed.filter(({ name, shape }) => {
    const declared = inputs.find((input) => input.name === name)?.shape;
    return shape.some((_, axis) => typeof declared?.[axis] !== 'number');
  });
  return new TrtforgeError(
    error.code,
    `ONNX Runtime cannot run ${given} with ${fed.map(({ name, shape }) => `${name} [${shape.join(', ')}]`).join(', ')}: ${error.message}`,
    {
      cause: error,
      remedy: error.message.includes(NOT_BUILT)
        ? error.remedy
        : open.length === 0
          ? 'Pass values that the model takes: NAME=@FILE.npy.'
          : `Pass other shapes than ${open.map(({ name, shape }) => shapeText(name, shape)).join(', ')}, or tensors that the model takes: NAME=@FILE.npy.`,
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
