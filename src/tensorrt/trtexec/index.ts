/** Readers of what trtexec writes: its log and its JSON exports. */

export {
  type ExportedOutput,
  type ExportedProfile,
  type ExportedTimes,
  readExportedOutput,
  readExportedProfile,
  readExportedTimes,
} from './exports.js';
export { readTrtexecLog } from './log/log.js';
export type { TrtexecLog } from './log/result.js';
