/** Streaming models: contracts, recorded references, verification over a stream, guards in production. */

export { type ContractCheck, checkContractOnly } from './check-contract.js';
export { type Drift, driftOf } from './compare/drift.js';
export { type DriftCheck, type DriftPolicy, judgeDrift } from './compare/drift-policy.js';
export type { ParityRequest } from './compare/request.js';
export type { ParityResult } from './compare/result-schema.js';
export type { Contract } from './contract/contract.js';
export { readContract } from './contract/file.js';
export type { ModelContext } from './contract/model.js';
export { type Guarded, guard, guardCall } from './guard/guard.js';
export { openGuardTelemetry } from './guard/telemetry.js';
export type { GuardListener, GuardViolation } from './guard/violation.js';
export type { GuardOptions } from './guard/watch.js';
export { streamingIssues } from './known-issues.js';
export type { Reference } from './recorded-stream.js';
export { type RecordFileRequest, recordFile as recordReference } from './reference/record-file.js';
export type { RecordResult } from './reference/record-result.js';
export { openReference } from './reference/reference.js';
export { type ParityFileContext, verifyAgainstReference } from './verify/file.js';
