/** Engines as model repositories of NVIDIA Triton Inference Server: written, checked, and tried with its server. */

export type { NamedGpu } from '../../engines/identity/target.js';
export type { WorkContext } from '../../events.js';
export { checkRepository, type TritonCheckRequest } from './check/check.js';
export type { TritonCheck } from './check/result.js';
export { exportModels, type TritonExport, type TritonExportRequest } from './export/export-models.js';
export type { TritonTry } from './try/result-schema.js';
export { type TritonTryRequest, tryRepository } from './try/try.js';
