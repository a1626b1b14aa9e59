/** Streaming models: contracts, recorded references, verification over a stream, guards in production. */

import { atDoor } from '../../base/options/library-arguments.js';
import { readContract as contractOf } from '../../formats/contract/file.js';
import { openReference as open } from '../../formats/reference/reference.js';
import { checkContract as check } from './check/check.js';
import { recordOptions } from './record/options.js';
import { recordReference as record } from './record/record.js';
import { parityOptions } from './verify/options.js';
import { verifyAgainstReference as verify } from './verify/verify.js';

export type { Contract } from '../../formats/contract/contract.js';
export type { Reference } from '../../formats/reference/reference.js';
export type { ContractCheck } from './check/check.js';
export type { ModelContext } from './check/model-bindings.js';
export { type Drift, type DriftCheck, type DriftPolicy, driftOf, judgeDrift } from './compare/drift.js';
export type { GuardOptions } from './guard/guard.js';
export { type Guarded, guard, guardCall } from './guard/guarded-session.js';
export { openGuardTelemetry } from './guard/telemetry.js';
export type { GuardListener, GuardViolation } from './guard/violation.js';
export { streamingIssues } from './known-issues.js';
export { contractProfiles } from './profile-source.js';
export type { RecordRequest } from './record/options.js';
export type { RecordResult } from './record/result.js';
export type { ParityRequest } from './verify/options.js';
export type { ParityResult } from './verify/result.js';
export type { ParityContext } from './verify/run-parity.js';

export const readContract = atDoor(contractOf);
export const openReference = atDoor(open);
export const checkContract = atDoor(check);
export const recordReference = atDoor(record, recordOptions);
export const verifyAgainstReference = atDoor(verify, parityOptions);
