import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';

export type CudaGraph = 'auto' | 'always' | 'never';

/** How an engine is loaded and run, besides the GPU: every request that opens one has these, under these names. They have no effect on a model. */
export interface EngineLoadOptions {
  /** A toolchain, or the name of one; default: the first that loads the plan. */
  readonly toolchain?: Toolchain | string;
  /** The identity that the engine must have, so that no other one passes in its place; a path in a store (`by-identity/xx/ID/`) states it already. */
  readonly identity?: string;
  /** Plug-in libraries that the engine needs. */
  readonly plugins?: readonly string[];
  /** Version-compatible plans carry code that runs in this process: only where this is true. */
  readonly allowHostCode?: boolean;
  /** Bytes of weights kept on the GPU, for engines built with weight streaming; default all. */
  readonly weightBudget?: number | 'automatic';
  /** Default `auto`: as soon as shapes repeat. */
  readonly cudaGraph?: CudaGraph;
}

/** These options among those of a request. */
export const engineLoadOptionsOf = ({
  toolchain,
  identity,
  plugins,
  allowHostCode,
  weightBudget,
  cudaGraph,
}: EngineLoadOptions): EngineLoadOptions => ({
  ...{ toolchain, identity, plugins, allowHostCode, weightBudget, cudaGraph },
});
