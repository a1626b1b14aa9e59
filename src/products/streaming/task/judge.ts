import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import type { JudgedTask } from '../compare/task-schema.js';

/** Decides by the outputs of both, chunk by chunk. */
export interface TaskJudge {
  /** Both sides of one chunk; null where the candidate gave nothing. What is given may be overwritten afterwards. */
  take(chunk: number, candidate: NamedTensors | null, reference: NamedTensors): Promise<void>;
  result(): JudgedTask;
  close(): Promise<void>;
}
