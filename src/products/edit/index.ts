/** Changes of ONNX models, each proven against the original. */

import { atDoor } from '../../base/options/library-arguments.js';
import { contextOptions } from '../../base/options/option.js';
import { editOnnx as edit, editOptions } from './edit.js';

export type { WorkContext } from '../../events.js';
export type { EditOptions } from './edit.js';
export type { EditResult } from './result.js';
export type { EditStep } from './steps/steps.js';

export const editOnnx = atDoor(edit, editOptions, contextOptions);
