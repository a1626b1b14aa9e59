/** Models that are deployed together: build them, check them as the chain they are. */

export type { OpenRecogniser, RecogniserOptions } from '../../quality/tasks/recogniser.js';
export type { BundleContext, BundleRequest } from './bundle-request.js';
export { forgeBundle } from './forge-bundle.js';
export { openRecogniser } from './recogniser.js';
export type { BundleReport } from './report-schema.js';
export { taskKind as tokenTask } from './token-task.js';
