/** Engines for many GPUs and versions of TensorRT, of one file: planned, built by schedulers, proven; and which engine loads where. */

export type { BundleParts } from '../../engines/builder/build.js';
export type { NamedGpu, TargetRequest } from '../../engines/identity/target.js';
export type { ProfileSource } from '../../engines/profiles/sample-profile.js';
export type { WorkContext } from '../../events.js';
export type { AfterFailure } from '../../quality/verify/verify.js';
export { type FleetOptions, planFleet } from './open-plan.js';
export type { FleetPlan, FleetStatus, FleetWork } from './plan-schema.js';
export type { Rehearsal } from './rehearsal-schema.js';
export { planRehearsal, type RehearsalOptions, type RehearsalPlan, rehearse } from './rehearse.js';
export type { Where, WhereKind } from './schedulers/where.js';
export { fleetStatus } from './status.js';
export type { FleetSubmit } from './submit/result-schema.js';
export { planSubmit, type Sending, type SubmitOptions, submitFleet } from './submit/submit.js';
export { type WhichOptions, whichEngines } from './which/engines.js';
export type { Which } from './which/which.js';
export { type WorkOptions, workFleet } from './work.js';
