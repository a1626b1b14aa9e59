/** Models that are deployed together: build them, check them as the chain they are. */

import { unlessCancelled } from '../../forge/forge.js';
import type { BundleContext, BundleRequest } from './bundle-request.js';
import { forgeBundle as forgeComponents } from './forge-bundle.js';
import type { BundleReport } from './report-schema.js';

export type { BundleContext, BundleReport, BundleRequest };

/** Builds and checks a bundle: see docs/bundles.md. What fails is in the report's `failure`. Throws what stops it from beginning, and TF_CANCELLED. */
export async function forgeBundle(
  request: BundleRequest,
  context: BundleContext = {},
): Promise<BundleReport> {
  const report = await forgeComponents(request, context);
  return unlessCancelled(report, report.failure, context.signal);
}
export type { OpenRecogniser, RecogniserOptions } from '../../quality/tasks/recogniser.js';
export { bundleParts } from './bundle-parts.js';
export { openRecogniser } from './recogniser.js';
export { taskKind as tokenTask } from './token-task.js';
