/**
 * The library: everything the command line does, as typed functions.
 *
 * ```ts
 * import { forge } from 'trtforge';
 *
 * const { verdict, engine, report } = await forge({ model: 'resnet50.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' });
 * ```
 *
 * Long work takes `{ emit, signal }`: events while it runs, an AbortSignal to stop it. Every failure is a `TrtforgeError` with a stable code
 * and a remedy. Results are plain data with a `schema` field.
 */

export { type Passport, readPassport } from './engines/identity/passport.js';
export type { Recipe } from './engines/identity/recipe.js';
export { diffEngines } from './engines/layers/diff.js';
export { type LayersOptions, layersOfEngine, layersOfFile } from './engines/layers/engine-layers.js';
export { readLayers } from './engines/layers/read-layers.js';
export type { EngineLayers } from './engines/layers/schema.js';
export { type RunContext, runFile } from './engines/run/run-file.js';
export type { RunRequest } from './engines/run/run-request.js';
export type { RunResult } from './engines/run/run-result.js';
export type { BackEnd, OpenedSession, OpenOptions } from './engines/runtime/back-end.js';
export { observeOnOrt } from './engines/runtime/onnxruntime/calibrate.js';
export {
  type OrtSession,
  type OrtSessionOptions,
  openOrtSession,
} from './engines/runtime/onnxruntime/ort-session.js';
export { openSession } from './engines/runtime/open-session.js';
export type { Binding, RunOptions, Session } from './engines/runtime/session.js';
export type {
  EngineContext,
  EngineSession,
  EngineSessionOptions,
  EngineState,
  PreparedCall,
} from './engines/runtime/tensorrt/engine-interface.js';
export type { EngineLoadOptions } from './engines/runtime/tensorrt/engine-options.js';
export { openEngineSession } from './engines/runtime/tensorrt/engine-session.js';
export {
  openSupervisedEngine,
  type SupervisedEngine,
  type SupervisedEngineOptions,
} from './engines/runtime/tensorrt/supervised-engine.js';
export {
  type BuildOrLoadContext,
  type BuildOrLoadWishes,
  buildOrLoad,
} from './engines/store/build-or-load.js';
export type { ObtainedEngine } from './engines/store/obtain-engine.js';
export { type ErrorCode, ExitCode, TrtforgeError } from './errors.js';
export type { EventListener, LogSeverity, WorkEvent } from './events.js';
export { forge } from './forge/forge.js';
export type { ForgeContext, ForgeOptions } from './forge/options.js';
export { inspectModel } from './formats/onnx/inspect.js';
export type { Finding, ModelFacts } from './formats/onnx/model-facts.js';
export type { ConversionResult } from './formats/precision/conversion.js';
export { type ConvertContext, type ConvertOptions, convertModel } from './formats/precision/convert.js';
export type { ValueRange } from './formats/precision/options.js';
export type { NamedTensors, Tensor } from './formats/tensor/tensor.js';
export { buildBundle } from './products/bundle/build-bundle.js';
export type { BundleContext, BundleRequest } from './products/bundle/bundle-request.js';
export { forgeBundle } from './products/bundle/forge-bundle.js';
export type { BundleReport } from './products/bundle/report-schema.js';
export { type FromLogsRequest, streamsFromLogs } from './products/deepstream/repair.js';
export type { StreamsResult } from './products/deepstream/result.js';
export { type SetupContext, type StreamsSetup, streamsEffects } from './products/deepstream/setup.js';
export {
  planStreams,
  type StreamsEffects,
  type StreamsPlan,
  type StreamsRequest,
  streams,
} from './products/deepstream/streams.js';
export { type ContractCheck, checkContractOnly } from './products/streaming/check-contract.js';
export { type Drift, driftOf } from './products/streaming/compare/drift.js';
export { type DriftCheck, type DriftPolicy, judgeDrift } from './products/streaming/compare/drift-policy.js';
export type { ParityRequest } from './products/streaming/compare/request.js';
export type { ParityResult } from './products/streaming/compare/result-schema.js';
export type { Contract } from './products/streaming/contract/contract.js';
export { readContract } from './products/streaming/contract/file.js';
export type { ModelContext } from './products/streaming/contract/model.js';
export { type Guarded, guard, guardCall } from './products/streaming/guard/guard.js';
export { openGuardTelemetry } from './products/streaming/guard/telemetry.js';
export type { GuardListener, GuardViolation } from './products/streaming/guard/violation.js';
export type { GuardOptions } from './products/streaming/guard/watch.js';
export type { Reference } from './products/streaming/recorded-stream.js';
export {
  type RecordFileRequest,
  recordFile as recordReference,
} from './products/streaming/reference/record-file.js';
export type { RecordResult } from './products/streaming/reference/record-result.js';
export { openReference } from './products/streaming/reference/reference.js';
export { type ParityFileContext, verifyAgainstReference } from './products/streaming/verify/file.js';
export { benchAgainst } from './quality/bench/against.js';
export { benchEngine } from './quality/bench/bench-engine.js';
export { type BenchTool, benchWith } from './quality/bench/bench-with.js';
export {
  type AgainstRequest,
  type BenchContext,
  type BenchRequest,
  defaultMode,
  defaultRequest,
} from './quality/bench/request.js';
export type { BenchResult } from './quality/bench/result.js';
export { type ExplainResult, explainLines, explainLog } from './quality/explain/explain.js';
export type { ExplainedIssue } from './quality/explain/explained-issue.js';
export { type Explained, type ExplainingOptions, explaining } from './quality/explain/failure.js';
export { knownIssues } from './quality/explain/known-issues/index.js';
export type { KnownIssue } from './quality/explain/known-issues/issue.js';
export { type ModelNodes, openModelNodes } from './quality/explain/model-nodes.js';
export { type SilentlyBuilt, silentIssuesOf } from './quality/explain/silent-issues.js';
export { type DraftedPolicy, draftPolicy } from './quality/gate/draft-policy.js';
export { type GateRequest, runGate } from './quality/gate/gate.js';
export type { GateResult } from './quality/gate/gate-result.js';
export { type CompareContext, compareOutputs } from './quality/verify/compare.js';
export type { CompareRequest } from './quality/verify/compare-request.js';
export type { VerifyResult } from './quality/verify/result.js';
export type { VerifyRequest } from './quality/verify/tolerance.js';
export { type VerifyContext, verifyModel } from './quality/verify/verify.js';
export type { ForgeResult } from './report/result.js';
export {
  chooseToolchain,
  type FoundToolchain,
  findToolchains,
  type ToolchainWish,
} from './tensorrt/toolchain/find.js';
export {
  type InstalledToolchain,
  type InstallRequest,
  type InstallSurroundings,
  installToolchain,
} from './tensorrt/toolchain/install.js';
export type { DamagedLibrary } from './tensorrt/toolchain/library-folder.js';
export type { Toolchain } from './tensorrt/toolchain/toolchain.js';
export {
  type ExportedOutput,
  type ExportedProfile,
  type ExportedTimes,
  readExportedOutput,
  readExportedProfile,
  readExportedTimes,
} from './tensorrt/trtexec/exports.js';
export { readTrtexecLog } from './tensorrt/trtexec/log/log.js';
export type { TrtexecLog } from './tensorrt/trtexec/log/result.js';
export type { ModeRequest } from './tensorrt/trtexec/request.js';
