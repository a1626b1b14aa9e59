/**
 * The library: everything the command line does for one model, as typed functions. Products have doors of their own: `trtforge/streaming`,
 * `trtforge/edit`, `trtforge/bundle`, `trtforge/deepstream`, `trtforge/evaluation`, `trtforge/triton`, `trtforge/fleet`; `trtforge/trtexec` reads what trtexec writes, `trtforge/onnx` reads and writes ONNX.
 *
 * ```ts
 * import { forge } from 'trtforge';
 *
 * const { verdict, engine, report } = await forge({ model: 'resnet50.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' });
 * ```
 *
 * Every function but `tensor` gives a promise, and its room is loaded with its first call. Long work takes `{ emit, signal, environment }`: events while it runs, an
 * AbortSignal to stop it, the environment that it reads. Every failure is a `TrtforgeError` with a stable code and a remedy. Results are plain data with a `schema` field.
 */

import type { Group } from './base/options/kinds.js';
import type { PlainArgument } from './base/options/library-arguments.js';
import type { OptionsOf } from './base/options/option.js';
import type { BuildContext, BuildOptions } from './engines/builder/options.js';
import type { ObtainedEngine } from './engines/builder/result.js';
import type { EngineSession } from './engines/runtime/tensorrt/engine-interface.js';
import { type ErrorCode, ExitCode, TrtforgeError } from './errors.js';
import type { EventListener, LogSeverity, WorkContext, WorkEvent } from './events.js';
import type { ForgeContext, ForgeOptions } from './forge/options.js';
import type { checkedSessionOptions } from './quality/known-answer/at-load.js';
import type { VerifyContext, VerifyRequest } from './quality/verify/options.js';
import type { InstalledToolchain, InstallRequest } from './tensorrt/toolchain/install.js';

export { type ErrorCode, ExitCode, TrtforgeError };

interface EngineSessionOptions extends OptionsOf<typeof checkedSessionOptions> {}

/** Options with an object wherever a Map goes, and a list wherever a Set goes. */
type Plain<T> = {
  readonly [K in keyof T]: K extends 'verify' | 'conversion' ? Plain<T[K]> : PlainValue<T[K]>;
};
type PlainValue<V> =
  V extends ReadonlyMap<string, infer E>
    ? V | Readonly<Record<string, E>>
    : V extends ReadonlySet<infer E>
      ? V | readonly E[]
      : V;
type Passed<T> = T extends object
  ? [Extract<keyof T, 'shapes' | 'names' | 'keepOps' | 'conversion'>] extends [never]
    ? T
    : Plain<T>
  : T;

/** The accepted forms of an argument P, loaded with the first call: one value, or all options by their names. */
type Taken<P> = () => Promise<
  PlainArgument | ([P] extends [object] ? Readonly<Record<Exclude<keyof P, 'addon'>, Group[string]>> : never)
>;

/** A function whose module is loaded when it is called. `taken` are its arguments in turn. A signal that is aborted already ends the call before its work is loaded. */
const lazy =
  <A extends unknown[], R>(
    load: () => Promise<(...args: A) => R | Promise<R>>,
    ...taken: { readonly [I in keyof A]?: Taken<NonNullable<A[I]>> }
  ): ((...args: { [I in keyof A]: Passed<A[I]> }) => Promise<R>) =>
  async (...passed) => {
    const [{ checkArguments }, { libraryError }, { throwIfCancelled }, ...declared] = await Promise.all([
      import('./base/options/library-arguments.js'),
      import('./base/options/library-arguments.js'),
      import('./base/process/cancel.js'),
      ...(taken as readonly Taken<unknown>[]).map((each) => each()),
    ]);
    const args = checkArguments(passed, declared);
    for (const argument of args as readonly { readonly signal?: AbortSignal }[])
      throwIfCancelled(argument?.signal, 'starting');
    try {
      return await (await load())(...(args as A));
    } catch (error) {
      throw libraryError(error, declared);
    }
  };

/** One value. */
const value =
  (name: string, kind: 'text' | 'list' | 'function' | 'object' | 'layers', isOptional?: 'optional') =>
  async (): Promise<PlainArgument> => {
    const is = await import('./base/options/kinds.js');
    const kinds = {
      text: is.text,
      list: is.list(),
      function: is.callback(),
      object: is.object(),
      layers: is.layers,
    };
    return { name, kind: kinds[kind], ...(isOptional ? {} : { needed: true }) };
  };
const file = value('file', 'text');
const context = async () => (await import('./base/options/option.js')).contextOptions;
const opening = async () => (await import('./engines/runtime/back-end.js')).openOptions;

/**
 * From an ONNX file to a named, checked engine and its report, in a run root.
 *
 * ```ts
 * const { verdict, engine, report } = await forge({ model: 'resnet50.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' });
 * ```
 */
export const forge = lazy(
  async () => {
    const { forge, unlessCancelled } = await import('./forge/forge.js');
    const { searches } = await import('./registry.js');
    return async (options: ForgeOptions, context?: ForgeContext): ReturnType<typeof forge> => {
      const result = await forge(options, { ...context, ...searches });
      const { error } = unlessCancelled(result, result.error, context?.signal);
      const { inLibraryWords } = await import('./base/options/library-arguments.js');
      const { forgeOptions } = await import('./forge/options.js');
      const [message = '', remedy = ''] = [error?.message, error?.remedy].map((text) =>
        inLibraryWords(text ?? '', [forgeOptions]),
      );
      return { ...result, error: error && { ...error, message, remedy } };
    };
  },
  async () => (await import('./forge/options.js')).forgeOptions,
  async () => (await import('./forge/options.js')).forgeContextOptions,
);
/**
 * Builds an engine, or finds it in the store. One that does not give its known answer here is TF_ENGINE_WRONG_ANSWER, and what was built is not kept.
 *
 * ```ts
 * const built = await buildOrLoad({ model: 'resnet50.onnx', batch: '1/8/32', target: 'tensorrt-rtx:sm_89' });
 * use(built.engine);
 * ```
 */
export const buildOrLoad = lazy(
  async (): Promise<(requested: BuildOptions, context?: Partial<BuildContext>) => Promise<ObtainedEngine>> =>
    (await import('./quality/known-answer/build-or-load.js')).buildOrLoad,
  async () => (await import('./engines/builder/options.js')).buildOptions,
  async () => (await import('./engines/builder/options.js')).buildContextOptions,
);
/**
 * The content of an ONNX model: bindings, operators, weights, FLOPs and memory, findings.
 *
 * ```ts
 * const facts = await inspectModel('resnet50.onnx', { shapes: { images: [1, 3, 224, 224] } });
 * use(facts.findings);
 * ```
 */
export const inspectModel = lazy(
  async () => (await import('./formats/onnx/inspect.js')).inspectModel,
  file,
  async () => (await import('./formats/onnx/inspect.js')).inspectOptions,
  context,
);
/**
 * FP32 ONNX to a strongly typed FP16 or BF16 file.
 *
 * ```ts
 * const converted = await convertModel('resnet50.onnx', 'resnet50.fp16.onnx', { precision: 'fp16' });
 * use(converted.output);
 * ```
 */
export const convertModel = lazy(
  async () => (await import('./formats/precision/convert.js')).convertModel,
  file,
  value('output', 'text'),
  async () => (await import('./formats/precision/convert.js')).convertOptions,
  context,
);
/**
 * Samples from files of any kind, run on ONNX Runtime: `convertModel`'s `calibration`.
 *
 * ```ts
 * const calibration = await calibrationOf({ data: ['pictures'], imgsz: 224 });
 * await convertModel('resnet50.onnx', 'resnet50.int8.onnx', { precision: 'int8', calibration });
 * ```
 */
export const calibrationOf = lazy(
  async () => (await import('./engines/calibration/calibration.js')).calibrationOf,
  async () => (await import('./engines/calibration/calibration.js')).calibrationOptions,
);
/**
 * Runs an engine or a model once, on files or random inputs, and keeps its outputs.
 *
 * ```ts
 * const ran = await runFile({ file: 'resnet50.onnx', sources: [{ kind: 'random' }], seed: 0 });
 * use(ran.outputs);
 * ```
 */
export const runFile = lazy(
  async () => (await import('./engines/run/run-file.js')).runFile,
  async () => (await import('./engines/run/options.js')).runOptions,
  async () => (await import('./engines/run/run-file.js')).runContextOptions,
);
/**
 * Opens an engine or a model, in a process of its own: what crashes there is an error here.
 *
 * ```ts
 * await using session = await openSession('resnet50.onnx');
 * const outputs = await session.run({ images: tensor(pixels, [1, 3, 224, 224]) });
 * use(outputs.get('logits'));
 * ```
 */
export const openSession = lazy(
  async () => (await import('./engines/runtime/open-session.js')).openSession,
  file,
  opening,
  context,
);
/**
 * Opens an engine in this process: prepared calls, CUDA graphs, state on the GPU. With `check` it proves itself first.
 *
 * ```ts
 * await using served = await openEngineSession('resnet50.engine', { check: 'refuse' });
 * const answer = await served.run({ images: tensor(pixels, [1, 3, 224, 224]) });
 * use(answer);
 * ```
 */
export const openEngineSession = lazy(
  async (): Promise<(planPath: string, options?: EngineSessionOptions) => Promise<EngineSession>> =>
    (await import('./quality/known-answer/at-load.js')).openCheckedSession,
  file,
  async () => (await import('./quality/known-answer/at-load.js')).checkedSessionOptions,
);
/**
 * Memory for the activations of several engines, which run one at a time: what the largest needs, in the place of the sum. Open all engines before the first of them runs.
 *
 * ```ts
 * const memory = await activationPool();
 * await using encoder = await openEngineSession('encoder.engine', { memory });
 * await using joint = await openEngineSession('joint.engine', { memory });
 * use([memory.bytes, memory.separateBytes]);
 * ```
 */
export const activationPool = lazy(
  async () => (await import('./engines/runtime/tensorrt/activation-pool.js')).activationPool,
);
/**
 * Compares an engine or a model with a model on the same inputs.
 *
 * ```ts
 * const verified = await verifyModel({ reference: 'resnet50.onnx', candidate: 'resnet50.fp16.onnx', data: { files: ['pictures'] } });
 * use(verified.outcome);
 * ```
 */
export const verifyModel = lazy(
  async () => {
    const { verifyModel } = await import('./quality/verify/verify.js');
    const { afterFailure } = (await import('./registry.js')).searches;
    return (request: VerifyRequest, context?: VerifyContext) =>
      verifyModel(request, { ...context, afterFailure });
  },
  async () => (await import('./quality/verify/options.js')).verifyOptions,
  async () => (await import('./quality/verify/options.js')).verifyContextOptions,
);
/**
 * Compares recorded outputs with others.
 *
 * ```ts
 * const compared = await compareOutputs({ reference: 'fp32.npz', candidate: 'fp16.npz', precision: 'fp16' });
 * use(compared.outcome);
 * ```
 */
export const compareOutputs = lazy(
  async () => (await import('./quality/verify/compare.js')).compareOutputs,
  async () => (await import('./quality/verify/options.js')).compareOptions,
  context,
);
/**
 * Measures an engine on the GPU, with trtforge's own meter or with trtexec.
 *
 * ```ts
 * const request = { ...(await defaultRequest('resnet50.engine')), device: 0 };
 * const measured = await benchWith('trtforge', request);
 * use(measured.runs);
 * ```
 */
export const benchWith = lazy(
  async () => (await import('./quality/bench/bench-engine.js')).benchWith,
  value('tool', 'text'),
  async () => (await import('./quality/bench/options.js')).benchOptions,
  async () => (await import('./quality/bench/options.js')).benchContextOptions,
);
/**
 * Measures two engines, or one in two modes, in turns.
 *
 * ```ts
 * const [candidate, reference] = [await defaultRequest('new.engine'), await defaultRequest('old.engine')];
 * const both = await benchCompare({ candidate, reference, rounds: 5 });
 * use(both);
 * ```
 */
export const benchCompare = lazy(
  async () => (await import('./quality/bench/compare.js')).benchCompare,
  async () => (await import('./quality/bench/options.js')).benchCompareOptions,
  context,
);
/**
 * A measuring request with every default, for one engine.
 *
 * ```ts
 * const defaults = await defaultRequest('resnet50.engine');
 * use(defaults.mode);
 * ```
 */
export const defaultRequest = lazy(
  async () => (await import('./quality/bench/options.js')).defaultRequest,
  file,
);
/**
 * Judges results by a policy.
 *
 * ```ts
 * const gate = await runGate({ policy: 'gate.yaml', results: ['forge.json'], day: '2026-11-28' });
 * use(gate.outcome);
 * ```
 */
export const runGate = lazy(
  async () => (await import('./quality/gate/gate.js')).runGate,
  async () => (await import('./quality/gate/gate.js')).gateOptions,
);
/**
 * A policy whose limits are what results measured.
 *
 * ```ts
 * const drafted = await draftPolicy(['forge.json']);
 * use(drafted.policy);
 * ```
 */
export const draftPolicy = lazy(
  async () => (await import('./quality/gate/draft-policy.js')).draftPolicy,
  value('results', 'list'),
);
/**
 * Explains the log of a build or a run, by the known issues.
 *
 * ```ts
 * const explained = await explainLog('build.log');
 * use(explained.issues);
 * ```
 */
export const explainLog = lazy(
  async () => (await import('./quality/explain/explain.js')).explainLog,
  file,
  async () => (await import('./quality/explain/explain.js')).explainOptions,
);
/**
 * Does work that calls TensorRT; a failure names the known issues in its log.
 *
 * ```ts
 * const { result, issues } = await explaining((emit) => buildOrLoad({ model: 'resnet50.onnx' }, { emit }), { emit: () => {} });
 * use([result, issues]);
 * ```
 */
export const explaining = lazy(
  async () => (await import('./quality/explain/failure.js')).explaining,
  value('work', 'function'),
  async () => (await import('./quality/explain/failure.js')).explainingOptions,
) as typeof import('./quality/explain/failure.js').explaining;
/**
 * Every TensorRT on this machine.
 *
 * ```ts
 * const toolchains = await findToolchains();
 * use(toolchains);
 * ```
 */
export const findToolchains = lazy(
  async () => (await import('./tensorrt/toolchain/find.js')).findToolchains,
  value('environment', 'object', 'optional'),
);
/**
 * Installs tensorrt-rtx.
 *
 * ```ts
 * const installed = await installToolchain({ acceptLicense: true });
 * use(installed);
 * ```
 */
export const installToolchain = lazy(
  async (): Promise<(request: InstallRequest, context?: WorkContext) => Promise<InstalledToolchain>> =>
    (await import('./tensorrt/toolchain/install.js')).installToolchain,
  async () => (await import('./tensorrt/toolchain/install.js')).installOptions,
  context,
);
/**
 * The passport beside an engine.
 *
 * ```ts
 * const passport = await readPassport('resnet50.engine');
 * use(passport.identity.digest);
 * ```
 */
export const readPassport = lazy(
  async () => (await import('./engines/identity/passport.js')).readPassport,
  file,
);
/**
 * The layers of an engine, which its GPU loads, or in a file of trtexec or of `engine layers --json`.
 *
 * ```ts
 * const layers = await layersOf('layers.json');
 * use(layers.summary);
 * ```
 */
export const layersOf = lazy(
  async () => (await import('./engines/layers/engine-layers.js')).layersOf,
  file,
  async () => (await import('./engines/layers/engine-layers.js')).layersOptions,
);
/**
 * Compares the layers of two engines.
 *
 * ```ts
 * const before = await layersOf('before.json');
 * use(await diffEngines(before, await layersOf('after.json')));
 * ```
 */
export const diffEngines = lazy(
  async () => (await import('./engines/layers/diff.js')).diffEngines,
  value('a', 'layers'),
  value('b', 'layers'),
);

export type { CalibrationRequest } from './engines/calibration/calibration.js';
export type { ExportedFile, Exporter } from './engines/exports/exporter.js';
export type { Passport } from './engines/identity/passport.js';
export type { Recipe } from './engines/identity/recipe.js';
export type { TargetRequest } from './engines/identity/target.js';
export type { LayersOptions } from './engines/layers/engine-layers.js';
export type { EngineDiff, EngineLayers, LayersResult } from './engines/layers/result.js';
export type { ProfileRequest } from './engines/profiles/profile.js';
export type { Sizes } from './engines/profiles/sizes.js';
export type { RunRequest, RunSource } from './engines/run/options.js';
export type { RunResult } from './engines/run/result.js';
export type { RunContext } from './engines/run/run-file.js';
export type {
  BackEnd,
  MeasureOptions,
  ModelRunOptions,
  OpenedSession,
  OpenOptions,
  PlaceOptions,
} from './engines/runtime/back-end.js';
export type { OrtFacts } from './engines/runtime/onnxruntime/ort-facts.js';
export type { Binding, RunOptions, Session } from './engines/runtime/session.js';
export type { ActivationPool } from './engines/runtime/tensorrt/activation-pool.js';
export type {
  EngineContext,
  EngineState,
  PreparedCall,
} from './engines/runtime/tensorrt/engine-interface.js';
export type { CudaGraph, EngineLoadOptions } from './engines/runtime/tensorrt/options.js';
export type { InspectOptions } from './formats/onnx/inspect.js';
export type { Finding, ModelFacts } from './formats/onnx/model-facts.js';
export type { ValueRange } from './formats/precision/calibrate/ranges.js';
export type { ConvertOptions } from './formats/precision/convert.js';
export type { Calibration } from './formats/precision/options.js';
export type { PluginTypes } from './formats/precision/plugin-types.js';
export type { ConversionResult } from './formats/precision/result.js';
export type { ElementArray, ElementArrays, NamedTensors, Tensor } from './formats/tensor/tensor.js';
export { type TypedTensor, tensor } from './formats/tensor/tensor.js';
export type { BenchTool } from './quality/bench/bench-engine.js';
export type {
  BenchCompareRequest,
  BenchContext,
  BenchRequest,
  InputRequest,
  ShapeRequest,
} from './quality/bench/options.js';
export type { BenchComparison, BenchResult } from './quality/bench/result.js';
export type { ExplainMeans, ExplainResult } from './quality/explain/explain.js';
export type { ExplainedIssue } from './quality/explain/explained-issue.js';
export type { Explained, ExplainingOptions } from './quality/explain/failure.js';
export type { KnownIssue } from './quality/explain/known-issues/issue.js';
export type { DraftedPolicy } from './quality/gate/draft-policy.js';
export type { GateRequest } from './quality/gate/gate.js';
export type { GateResult } from './quality/gate/result.js';
export type { CheckMode } from './quality/known-answer/at-load.js';
export type { AskedCheck } from './quality/verify/checks.js';
export type {
  CompareRequest,
  SampleData,
} from './quality/verify/options.js';
export type { CompareResult, VerifyResult } from './quality/verify/result.js';
export type { AskedTolerance } from './quality/verify/tolerance.js';
export type { ForgeResult } from './report/forge-result.js';
export type { FoundToolchain } from './tensorrt/toolchain/find.js';
export type { DamagedLibrary, Toolchain } from './tensorrt/toolchain/toolchain.js';
export type { ModeRequest } from './tensorrt/trtexec/options.js';
export type {
  BuildContext,
  BuildOptions,
  EngineSession,
  EngineSessionOptions,
  EventListener,
  ForgeContext,
  ForgeOptions,
  InstalledToolchain,
  InstallRequest,
  LogSeverity,
  ObtainedEngine,
  VerifyContext,
  VerifyRequest,
  WorkContext,
  WorkEvent,
};
