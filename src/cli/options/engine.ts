import type { EngineLoadOptions } from '../../engines/runtime/tensorrt/engine-options.js';
import { checkModes } from '../../quality/known-answer/check-mode.js';
import { choice, flag, type OptionValues, option, text } from '../option.js';
import { parseIdentity, parseSize } from '../values.js';

/** What only loading takes: for commands that also build, which have plug-ins and toolchain among their own options. */
export const loadOptions = {
  weightBudget: option({
    flags: '--weight-budget <size>',
    group: 'Engine loading',
    advanced: true,
    describe:
      'engines with weight streaming: how much of the weights stays on the GPU: 4G, 0 for as little as there can be, automatic (default: all)',
    parse: (value) => (value === 'automatic' ? value : value === '0' ? 0 : parseSize(value)),
  }),
  allowHostCode: flag({
    flags: '--allow-host-code',
    group: 'Engine loading',
    advanced: true,
    trust: true,
    describe: 'version-compatible engines carry their own runtime: let that code run here',
  }),
};

/** How engines are loaded, besides the GPU; every command that opens engines has the same. */
export const enginesOptions = {
  ...loadOptions,
  plugin: text({
    flags: '--plugin <library>',
    group: 'Engine loading',
    advanced: true,
    trust: true,
    describe: 'engines: a plug-in library it needs',
    repeat: true,
  }),
  toolchain: text({
    flags: '--toolchain <name>',
    group: 'Engine loading',
    advanced: true,
    trust: true,
    describe:
      'engines: which TensorRT, by its name in `trtforge toolchain list` or its folder (default: the first that loads it)',
  }),
};

/** The same for commands that open one: no two engines have the same identity. */
export const engineOptions = {
  ...enginesOptions,
  identity: option({
    flags: '--identity <id>',
    group: 'Engine loading',
    describe: 'engines: reject one that has not this identity, as trtforge build printed it',
    parse: parseIdentity,
  }),
};

/** For commands that run engines step by step. */
export const cudaGraphOption = choice({
  flags: '--cuda-graph <when>',
  group: 'Engine loading',
  advanced: true,
  describe: 'engines: replay runs from a CUDA graph (default: auto, as soon as shapes repeat)',
  choices: ['auto', 'always', 'never'],
});

/** For commands that use an engine, not for those that judge it. */
export const checkOption = choice({
  flags: '--check <when>',
  group: 'Engine loading',
  advanced: true,
  describe:
    'engines with a known answer: refuse one that gives another, or warn of it; once for each GPU, driver and library',
  choices: checkModes,
  default: 'off',
});

export type EngineOptionValues = OptionValues<typeof enginesOptions> & {
  readonly identity?: EngineLoadOptions['identity'];
  readonly cudaGraph?: EngineLoadOptions['cudaGraph'];
};

/** The options as every room takes them that opens an engine. */
export const engineOptionsOf = (options: EngineOptionValues): EngineLoadOptions => ({
  toolchain: options.toolchain,
  identity: options.identity,
  plugins: options.plugin,
  allowHostCode: options.allowHostCode,
  weightBudget: options.weightBudget,
  cudaGraph: options.cudaGraph,
});
