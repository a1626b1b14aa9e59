/** Models that are deployed together: build them, check them as the chain they are. */

import { atDoor } from '../../base/options/library-arguments.js';
import { unlessCancelled } from '../../forge/forge.js';
import { bundleParts as parts } from './bundle-parts.js';
import { forgeBundle as forgeComponents } from './forge-bundle.js';
import { type BundleContext, type BundleRequest, bundleOptions } from './options.js';
import { openRecogniser as open } from './recogniser.js';
import type { BundleReport } from './result.js';

export type { BundleContext, BundleReport, BundleRequest };

/** Builds and checks a bundle: see docs/bundles.md. What fails is in the report's `failure`. Throws what stops it from beginning, and TF_CANCELLED. */
export const forgeBundle = atDoor(
  async (request: BundleRequest, context: BundleContext = {}): Promise<BundleReport> => {
    const report = await forgeComponents(request, context);
    return unlessCancelled(report, report.failure, context.signal);
  },
  bundleOptions,
);
export const openRecogniser = atDoor(open);
export type { RecogniserOptions } from '../../quality/tasks/options.js';
export type { OpenRecogniser } from '../../quality/tasks/task.js';
export const bundleParts = atDoor(parts);
export { taskKind as tokenTask } from './token-task.js';
