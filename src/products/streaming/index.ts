/** Streaming models: contracts, recorded references, verification over a stream, guards in production. */

export type { Contract } from '../../formats/contract/contract.js';
export { readContract } from '../../formats/contract/file.js';
export { openReference } from '../../formats/reference/jsonl.js';
export type { Reference } from '../../formats/reference/reference.js';
export { type ContractCheck, checkContract } from './check/check.js';
export type { ModelContext } from './check/model-bindings.js';
export { type Drift, type DriftCheck, type DriftPolicy, driftOf, judgeDrift } from './compare/drift.js';
export { type Guarded, guard, guardCall } from './guard/guard.js';
export { openGuardTelemetry } from './guard/telemetry.js';
export type { GuardListener, GuardViolation } from './guard/violation.js';
export type { GuardOptions } from './guard/watch.js';
export { streamingIssues } from './known-issues.js';
export { contractProfiles } from './profile-source.js';
export { type RecordRequest, recordReference } from './record/record.js';
export type { RecordResult } from './record/result.js';
export type { ParityRequest } from './verify/plan.js';
export type { ParityResult } from './verify/result.js';
export type { ParityContext } from './verify/run-parity.js';
export { verifyAgainstReference } from './verify/verify.js';
