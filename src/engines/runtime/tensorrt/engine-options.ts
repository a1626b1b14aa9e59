import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';
import { word } from '../../store/build-args.js';

export type CudaGraph = 'auto' | 'always' | 'never';

/** How an engine is loaded and run, besides the GPU: every request that opens one has these, under these names. They have no effect on a model. */
export interface EngineLoadOptions {
  /** A toolchain, or the name of one; default: the first that loads the plan. */
  readonly toolchain?: Toolchain | string | undefined;
  /** Plug-in libraries that the engine needs. */
  readonly plugins?: readonly string[] | undefined;
  /** Version-compatible plans carry code that runs in this process: only where this is true. */
  readonly allowHostCode?: boolean | undefined;
  /** Bytes of weights kept on the GPU, for engines built with weight streaming; default all. */
  readonly weightBudget?: number | 'automatic' | undefined;
  /** Default `auto`: as soon as shapes repeat. */
  readonly cudaGraph?: CudaGraph | undefined;
}

/** These options among those of a request. */
export const engineLoadOptionsOf = ({
  toolchain,
  plugins,
  allowHostCode,
  weightBudget,
  cudaGraph,
}: EngineLoadOptions): EngineLoadOptions => ({ toolchain, plugins, allowHostCode, weightBudget, cudaGraph });

/** The same options as arguments of the command line. A toolchain that is an object has no name there. */
export const engineArgs = (options: EngineLoadOptions): readonly string[] => [
  ...word('--cuda-graph', options.cudaGraph),
  ...loadArgs(options),
  ...(options.plugins ?? []).flatMap((path) => ['--plugin', path]),
  ...word('--toolchain', typeof options.toolchain === 'string' ? options.toolchain : undefined),
];

/** Those that only loading takes; a command that also builds has the others among its own. */
export const loadArgs = ({
  allowHostCode,
  weightBudget,
}: Pick<EngineLoadOptions, 'allowHostCode' | 'weightBudget'>): readonly string[] => [
  ...word(
    '--weight-budget',
    typeof weightBudget === 'number' && weightBudget > 0 ? `${weightBudget}B` : weightBudget,
  ),
  ...(allowHostCode === true ? ['--allow-host-code'] : []),
];
