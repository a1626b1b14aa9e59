/** Changes of ONNX models, each proven against the original. */

import { contextOptions } from '../../base/options/context.js';
import { atDoor } from '../../base/options/library-words.js';
import { editOnnx as edit, editOptions } from './edit.js';

export type { WorkContext } from '../../events.js';
export type { EditOptions } from './edit.js';
export type { EditResult } from './result.js';
export type { EditStep } from './steps/steps.js';

export const editOnnx = atDoor(edit, editOptions, contextOptions);
