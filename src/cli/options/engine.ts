import type { EngineWishes } from '../../engines/runtime/tensorrt/engine-options.js';
import { choice, flag, type OptionValues, option, text } from '../option.js';
import { parseSize } from '../values.js';

/** What only loading hears: for commands that also build, which say plug-ins and toolchain among what they build with. */
export const loadOptions = {
  weightBudget: option({
    flags: '--weight-budget <size>',
    describe:
      'engines with weight streaming: how much of the weights stays on the GPU: 4G, 0 for as little as there can be, automatic (default: all)',
    parse: (value) => (value === 'automatic' ? value : value === '0' ? 0 : parseSize(value)),
  }),
  allowHostCode: flag({
    flags: '--allow-host-code',
    trust: true,
    describe: 'version-compatible engines carry their own runtime: let that code run here',
  }),
};

/** How an engine is loaded, besides the GPU; every command that opens engines has the same. */
export const engineOptions = {
  ...loadOptions,
  plugin: text({
    flags: '--plugin <library>',
    trust: true,
    describe: 'engines: a plug-in library it needs',
    repeat: true,
  }),
  toolchain: text({
    flags: '--toolchain <name>',
    trust: true,
    describe:
      'engines: which TensorRT, by its name in trtforge toolchain list or its folder (default: the first that loads it)',
  }),
};

/** For commands that run engines step by step. */
export const cudaGraphOption = choice({
  flags: '--cuda-graph <when>',
  describe: 'engines: replay runs from a CUDA graph (default: auto, as soon as shapes repeat)',
  choices: ['auto', 'always', 'never'],
});

export type EngineOptionValues = OptionValues<typeof engineOptions> & {
  readonly cudaGraph?: EngineWishes['cudaGraph'];
};

/** The options as every room takes them that opens an engine. */
export const engineWishes = (options: EngineOptionValues): EngineWishes => ({
  toolchain: options.toolchain,
  plugins: options.plugin,
  allowHostCode: options.allowHostCode,
  weightBudget: options.weightBudget,
  cudaGraph: options.cudaGraph,
});

/** The same of `loadOptions`. */
export const loadWishes = ({
  allowHostCode,
  weightBudget,
}: OptionValues<typeof loadOptions>): Pick<EngineWishes, 'allowHostCode' | 'weightBudget'> => ({
  allowHostCode,
  weightBudget,
});

/** Names of the options that were given: for commands that load an engine only at times. */
export const engineOptionsGiven = (options: EngineOptionValues): readonly string[] => [
  ...(options.plugin.length > 0 ? ['--plugin'] : []),
  ...(options.toolchain === undefined ? [] : ['--toolchain']),
  ...(options.cudaGraph === undefined ? [] : ['--cuda-graph']),
  ...loadOptionsGiven(options),
];

export const loadOptionsGiven = (options: OptionValues<typeof loadOptions>): readonly string[] => [
  ...(options.allowHostCode ? ['--allow-host-code'] : []),
  ...(options.weightBudget === undefined ? [] : ['--weight-budget']),
];
