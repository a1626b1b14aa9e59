import { TrtforgeError } from '../../../errors.js';
import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';
import { word } from '../../store/build-args.js';

export type CudaGraph = 'auto' | 'always' | 'never';

/** How an engine is loaded and run, besides the GPU: every request that opens one has these, under these names. They mean nothing for a model. */
export interface EngineWishes {
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

/** The wishes for the engine among those of a request. */
export const engineWishesOf = ({
  toolchain,
  plugins,
  allowHostCode,
  weightBudget,
  cudaGraph,
}: EngineWishes): EngineWishes => ({ toolchain, plugins, allowHostCode, weightBudget, cudaGraph });

/** What only an engine can honour is refused for a model by the name of its option, not dropped. Throws TF_USAGE. */
export function refuseEngineWishes(model: string, wishes: EngineWishes): void {
  const asked = {
    '--cuda-graph': wishes.cudaGraph,
    '--weight-budget': wishes.weightBudget,
    '--allow-host-code': wishes.allowHostCode || undefined,
    '--plugin': wishes.plugins?.[0],
    '--toolchain': wishes.toolchain,
  };
  const wrong = Object.entries(asked).find(([, wish]) => wish !== undefined);
  if (wrong === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${wrong[0]} is for engines; ${model} is a model, which runs on ONNX Runtime.`,
    { remedy: 'Leave the option out.' },
  );
}

/** The options that say the same on the command line. A toolchain that is an object has no word. */
export const engineWords = (wishes: EngineWishes): readonly string[] => [
  ...word('--cuda-graph', wishes.cudaGraph),
  ...loadWords(wishes),
  ...(wishes.plugins ?? []).flatMap((path) => ['--plugin', path]),
  ...word('--toolchain', typeof wishes.toolchain === 'string' ? wishes.toolchain : undefined),
];

/** Those of them that only loading hears; what also builds says the others among its own. */
export const loadWords = ({
  allowHostCode,
  weightBudget,
}: Pick<EngineWishes, 'allowHostCode' | 'weightBudget'>): readonly string[] => [
  ...word(
    '--weight-budget',
    typeof weightBudget === 'number' && weightBudget > 0 ? `${weightBudget}B` : weightBudget,
  ),
  ...(allowHostCode === true ? ['--allow-host-code'] : []),
];
