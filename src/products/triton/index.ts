/** Engines as model repositories of NVIDIA Triton Inference Server: written, checked, and tried with its server. */

import { atDoor } from '../../base/options/library-arguments.js';
import { contextOptions } from '../../base/options/option.js';
import { checkRepository as check } from './check/check.js';
import { checkOptions } from './check/options.js';
import { exportModels as write } from './export/export-models.js';
import { exportOptions } from './export/options.js';
import { tryOptions } from './try/options.js';
import { tryRepository as attempt } from './try/try.js';

export type { NamedGpu } from '../../engines/identity/target.js';
export type { WorkContext } from '../../events.js';
export type { TritonCheckRequest } from './check/options.js';
export type { TritonCheck } from './check/result.js';
export type { TritonExport } from './export/export-models.js';
export type { TritonExportRequest } from './export/options.js';
export type { TritonTryRequest } from './try/options.js';
export type { TritonTry } from './try/result.js';

export const checkRepository = atDoor(check, checkOptions, contextOptions);
export const exportModels = atDoor(write, exportOptions, contextOptions);
export const tryRepository = atDoor(attempt, tryOptions, contextOptions);
