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
export { benchAgainst } from './bench/against.js';
export { benchEngine } from './bench/bench-engine.js';
export { type BenchTool, benchWith } from './bench/bench-with.js';
export {
  type AgainstRequest,
  type BenchContext,
  type BenchRequest,
  defaultMode,
  defaultRequest,
} from './bench/request.js';
export type { BenchResult } from './bench/result.js';
export { type FromLogsRequest, streamsFromLogs } from './bench/streams/repair.js';
export type { StreamsResult } from './bench/streams/result.js';
export { type SetupContext, type StreamsSetup, streamsEffects } from './bench/streams/setup.js';
export {
  planStreams,
  type StreamsEffects,
  type StreamsPlan,
  type StreamsRequest,
  streams,
} from './bench/streams/streams.js';
export { buildBundle } from './bundle/build-bundle.js';
export type { BundleContext, BundleRequest } from './bundle/bundle-request.js';
export type { BundleReport } from './bundle/report-schema.js';
export { type LayersOptions, layersOfEngine, layersOfFile } from './diagnose/engine-layers.js';
export { type ExplainResult, explainLines, explainLog } from './diagnose/explain.js';
export type { ExplainedIssue } from './diagnose/explained-issue.js';
export { type Explained, type ExplainingOptions, explaining } from './diagnose/failure.js';
export { knownIssues } from './diagnose/known-issues/index.js';
export type { KnownIssue } from './diagnose/known-issues/issue.js';
export { type ModelNodes, openModelNodes } from './diagnose/model-nodes.js';
export { type SilentlyBuilt, silentIssuesOf } from './diagnose/silent-issues.js';
export { readLayers } from './engine/layers.js';
export { diffEngines } from './engine/layers-diff.js';
export type { EngineLayers } from './engine/layers-schema.js';
export { type Passport, readPassport } from './engine/passport.js';
export type { Recipe } from './engine/recipe.js';
export { type ErrorCode, ExitCode, TrtforgeError } from './errors.js';
export type { EventListener, LogSeverity, WorkEvent } from './events.js';
export { forge } from './forge/forge.js';
export { forgeBundle } from './forge/forge-bundle.js';
export type { ForgeContext, ForgeOptions } from './forge/options.js';
export { type DraftedPolicy, draftPolicy } from './gate/draft-policy.js';
export { type GateRequest, runGate } from './gate/gate.js';
export type { GateResult } from './gate/gate-result.js';
export { inspectModel } from './onnx/inspect.js';
export type { Finding, ModelFacts } from './onnx/model-facts.js';
export type { ConversionResult } from './precision/conversion.js';
export { type ConvertContext, type ConvertOptions, convertModel } from './precision/convert.js';
export type { ValueRange } from './precision/options.js';
export type { ForgeResult } from './report/result.js';
export { observeOnOrt } from './runtime/calibrate.js';
export type {
  EngineContext,
  EngineSession,
  EngineSessionOptions,
  EngineState,
  PreparedCall,
} from './runtime/engine-interface.js';
export { openEngineSession } from './runtime/engine-session.js';
export type { EngineWishes } from './runtime/engine-wishes.js';
export { type OrtSession, type OrtSessionOptions, openOrtSession } from './runtime/ort-session.js';
export type { Binding, RunOptions, Session } from './runtime/session.js';
export {
  openSupervisedEngine,
  type SupervisedEngine,
  type SupervisedEngineOptions,
} from './runtime/supervised-engine.js';
export { type BuildOrLoadContext, type BuildOrLoadWishes, buildOrLoad } from './store/build-or-load.js';
export type { ObtainedEngine } from './store/obtain-engine.js';
export { type ContractCheck, checkContractOnly } from './stream/contract/check.js';
export type { Contract } from './stream/contract/contract.js';
export { readContract } from './stream/contract/file.js';
export type { ModelContext } from './stream/contract/model.js';
export { type Guarded, guard, guardCall } from './stream/guard/guard.js';
export { openGuardTelemetry } from './stream/guard/telemetry.js';
export type { GuardListener, GuardViolation } from './stream/guard/violation.js';
export type { GuardOptions } from './stream/guard/watch.js';
export { type Drift, driftOf } from './stream/parity/drift.js';
export { type DriftCheck, type DriftPolicy, judgeDrift } from './stream/parity/drift-policy.js';
export { type ParityFileContext, verifyAgainstReference } from './stream/parity/file.js';
export type { ParityRequest } from './stream/parity/request.js';
export type { ParityResult } from './stream/parity/schema.js';
export { type RecordFileRequest, recordFile as recordReference } from './stream/reference/record-file.js';
export type { RecordResult } from './stream/reference/record-result.js';
export type { Reference } from './stream/reference/recorded-stream.js';
export { openReference } from './stream/reference/reference.js';
export type { NamedTensors, Tensor } from './tensor/tensor.js';
export {
  chooseToolchain,
  type FoundToolchain,
  findToolchains,
  type ToolchainWish,
} from './toolchain/find.js';
export {
  type InstalledToolchain,
  type InstallRequest,
  type InstallSurroundings,
  installToolchain,
} from './toolchain/install.js';
export type { DamagedLibrary } from './toolchain/library-folder.js';
export type { Toolchain } from './toolchain/toolchain.js';
export {
  type ExportedOutput,
  type ExportedProfile,
  type ExportedTimes,
  readExportedOutput,
  readExportedProfile,
  readExportedTimes,
} from './trtexec/exports.js';
export { readTrtexecLog } from './trtexec/log.js';
export type { TrtexecLog } from './trtexec/log-result.js';
export type { ModeRequest } from './trtexec/request.js';
export { type CompareContext, compareOutputs } from './verify/compare.js';
export type { CompareRequest } from './verify/compare-request.js';
export type { VerifyRequest } from './verify/request.js';
export type { VerifyResult } from './verify/result.js';
export { type RunContext, runFile } from './verify/run-file.js';
export type { RunRequest } from './verify/run-request.js';
export type { RunResult } from './verify/run-result.js';
export { type VerifyContext, verifyModel } from './verify/verify.js';
