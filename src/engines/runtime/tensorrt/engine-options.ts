import * as is from '../../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../../base/options/option.js';
import { parseSize } from '../../../base/text/quantity.js';
import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';

const engineLoading = { group: 'Engine loading', advanced: true } as const;

/** Options of loading alone: a verb that also builds has plug-ins and toolchain among its options of the build. */
export const onlyLoadOptions = {
  /** Bytes of weights kept on the GPU, for engines built with weight streaming; default all. */
  weightBudget: optional(is.either(is.whole(0), is.words('automatic')), {
    flags: '--weight-budget <size>',
    ...engineLoading,
    describe:
      'engines with weight streaming: how much of the weights stays on the GPU: 4G, 0 for as little as there can be, automatic (default: all)',
    parse: (value) => (value === 'automatic' ? value : value === '0' ? 0 : parseSize(value)),
  }),
  /** Version-compatible plans carry code that runs in this process: only where this is true. */
  allowHostCode: optional(is.flag, {
    flags: '--allow-host-code',
    ...engineLoading,
    trust: true,
    describe: 'version-compatible engines carry their own runtime: let that code run here',
  }),
};

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
