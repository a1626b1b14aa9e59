import * as is from '../../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../../base/options/option.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';
import { engineLoading, onlyLoadOptions } from '../../../tensorrt/trtexec/options.js';
import { trustOptions } from '../../store/trust.js';
import { ActivationPool } from './activation-pool.js';

/** Options of loading engines, besides the GPU; everything that opens engines has the same. */
export const enginesOptions = {
  ...onlyLoadOptions,
  /** Plug-in libraries that the engine needs. */
  plugins: optional(is.list<string>(), {
    flags: '--plugin <library>',
    ...engineLoading,
    trust: true,
    describe: 'engines: a plug-in library it needs',
    repeat: true,
  }),
  /** A toolchain, or the name of one; default: the first that loads the plan. */
  toolchain: optional(is.either(is.text, is.object<Toolchain>()), {
    flags: '--toolchain <name>',
    ...engineLoading,
    trust: true,
    describe:
      'engines: which TensorRT, by its name in `trtforge toolchain list` or its folder (default: the first that loads it)',
  }),
};

/** The same for what opens one: no two engines have the same identity. */
export const loadOptions = {
  ...enginesOptions,
  /** The identity that the engine must have, so that no other one passes in its place; a path in a store (`by-identity/xx/ID/`) states it already. */
  identity: optional(is.identity, {
    flags: '--identity <id>',
    group: 'Engine loading',
    describe: 'engines: reject one that has not this identity, as trtforge build printed it',
  }),
};

/** And how it runs, step by step. */
export const engineOptions = {
  ...loadOptions,
  /** Default `auto`: as soon as shapes repeat. */
  cudaGraph: optional(is.words('auto', 'always', 'never'), {
    flags: '--cuda-graph <when>',
    ...engineLoading,
    describe: 'engines: replay runs from a CUDA graph (default: auto, as soon as shapes repeat)',
  }),
};

/** Every request that opens an engine has these, under these names. They have no effect on a model. */
export interface EngineLoadOptions extends OptionsOf<typeof engineOptions> {}

export type CudaGraph = NonNullable<EngineLoadOptions['cudaGraph']>;

type Load = OptionsOf<typeof onlyLoadOptions>;

/** As the addon takes them. */
export const nativeLoad = ({ weightBudget, allowHostCode = false }: Load) => ({
  weightBudget: weightBudget ?? null,
  allowHostCode,
});

/** Rejects a budget for an engine whose weights are not streamed; `subject` begins the sentence: `model.engine was`. Throws TF_OPTION_UNSUPPORTED. */
export function assertStreamed(subject: string, isStreamed: boolean, { weightBudget }: Load): void {
  if (weightBudget === undefined || isStreamed) return;
  throw new TrtforgeError(
    'TF_OPTION_UNSUPPORTED',
    `${subject} not built with weight streaming, so a budget for its weights has no effect.`,
    { remedy: 'Leave the budget out, or build the engine with --builder-config flags=weight-streaming.' },
  );
}

/** The addon would take any word for `automatic` and any number for bytes. Throws TF_SIZE_INVALID. */
export function checkWeightBudget({ weightBudget: budget }: Load): void {
  if (budget === undefined || budget === 'automatic') return;
  if (Number.isSafeInteger(budget) && budget >= 0) return;
  throw new TrtforgeError(
    'TF_SIZE_INVALID',
    `A weight budget of ${budget} is neither bytes nor "automatic".`,
  );
}

/** For the result of a measurement. */
export const askedBudget = ({ weightBudget }: Load) =>
  weightBudget === undefined ? {} : { weightBudgetAsked: weightBudget };

const callOptions = { count: optional(is.whole(0)), bytes: optional(is.whole(0)) };

export const engineSessionOptions = {
  /** Ordinal of the GPU among the visible ones; default 0. */
  device: optional(is.whole(0)),
  /** Default true: a plan without passport is rejected, since nothing states what it is. */
  requirePassport: optional(is.flag),
  /** Contexts that `run` spreads over; default 1. */
  contexts: optional(is.whole(1)),
  /** Number of calls that `run` keeps ready per context, and the pinned memory that they may use; default 16 and 2 GiB. */
  keepCalls: optional(is.object<OptionsOf<typeof callOptions>>(callOptions)),
  /** Activations that this session shares with others, one run at a time; default: memory of its own for each context. */
  memory: optional(is.instance(ActivationPool, 'the result of activationPool()')),
  ...trustOptions,
  ...engineOptions,
};

export interface EngineSessionOptions extends OptionsOf<typeof engineSessionOptions>, WorkContext {}
