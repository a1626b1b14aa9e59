import type { WorkContext } from '../../../events.js';
import type { EngineBinding, EngineSessionOptions, SessionFacts } from './engine-interface.js';
import type { SentTensor } from './tensor-exchange.js';

/** The calls of `supervised-engine.ts` on its child process, and the answers. Plain data: it crosses between processes. */
export type EngineChildCall =
  | {
      readonly kind: 'open';
      readonly planPath: string;
      readonly options: Omit<EngineSessionOptions, keyof WorkContext | 'contexts' | 'memory'>;
      /** Where large tensors are left for each other. */
      readonly folders: readonly string[];
    }
  | {
      readonly kind: 'run';
      readonly inputs: readonly SentTensor[];
      /** Files of earlier outputs that have been read. */
      readonly read: readonly string[];
      readonly profile: number | undefined;
      readonly iterations: number;
    };

export interface EngineOpened {
  readonly backend: string;
  readonly inputs: readonly EngineBinding[];
  readonly outputs: readonly EngineBinding[];
  readonly facts: SessionFacts;
}

export interface EngineRan {
  readonly outputs: readonly SentTensor[];
  /** One per iteration: from host memory to host memory, milliseconds. The first also makes buffers. */
  readonly ms: readonly number[];
  readonly cudaGraphFallbacks: readonly string[];
}
