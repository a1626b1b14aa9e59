/** Engines for many GPUs and versions of TensorRT, of one file: planned, built by schedulers, proven; and which engine loads where. */

import { atDoor } from '../../base/options/library-arguments.js';
import { contextOptions } from '../../base/options/option.js';
import { fleetOptions, planFleet as plan } from './plan.js';
import { planRehearsal as planProof, rehearse as prove, rehearsalOptions } from './rehearse.js';
import { fleetStatus as status } from './status.js';
import { planSubmit as planSending, submitFleet as submit, submitOptions } from './submit/submit.js';
import { whichEngines as which, whichOptions } from './which/which.js';
import { workFleet as work, workOptions } from './work.js';

export type { BundleParts } from '../../engines/builder/options.js';
export type { NamedGpu, TargetRequest } from '../../engines/identity/target.js';
export type { ProfileSource } from '../../engines/profiles/sample-profile.js';
export type { WorkContext } from '../../events.js';
export type { AfterFailure } from '../../quality/verify/verify.js';
export type { FleetOptions } from './plan.js';
export type { FleetPlan, FleetStatus, FleetWork } from './plan-schema.js';
export type { Rehearsal } from './rehearsal-result.js';
export type { RehearsalOptions, RehearsalPlan } from './rehearse.js';
export type { Where, WhereKind } from './schedulers/where.js';
export type { FleetSubmit } from './submit/result.js';
export type { Sending, SubmitOptions } from './submit/submit.js';
export type { Which } from './which/result.js';
export type { WhichOptions } from './which/which.js';
export type { WorkOptions } from './work.js';

export const planFleet = atDoor(plan, fleetOptions, contextOptions);
export const planRehearsal = atDoor(planProof, rehearsalOptions, contextOptions);
export const rehearse = atDoor(prove, rehearsalOptions, contextOptions);
export const fleetStatus = atDoor(status, fleetOptions, contextOptions);
export const planSubmit = atDoor(planSending, submitOptions, contextOptions);
export const submitFleet = atDoor(submit, submitOptions, contextOptions);
export const whichEngines = atDoor(which, whichOptions, contextOptions);
export const workFleet = atDoor(work, workOptions, contextOptions);
