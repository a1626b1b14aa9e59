/** Readers of what trtexec writes: its log and its JSON exports. */

import { atDoor } from '../../base/options/library-arguments.js';
import * as exports from './exports.js';
import { readTrtexecLog as readLog } from './log/log.js';

export type { ExportedOutput, ExportedProfile, ExportedTimes } from './exports.js';
export type { TrtexecLog } from './log/result.js';

export const readExportedOutput = atDoor(exports.readExportedOutput);
export const readExportedProfile = atDoor(exports.readExportedProfile);
export const readExportedTimes = atDoor(exports.readExportedTimes);
export const readTrtexecLog = atDoor(readLog);
