import { type OptionValues, valuesOf } from '../../../base/options/option.js';
import { choice } from '../../../cli/option.js';
import { builderOption, builderSettingsOf, buildOptions, storeOptions } from '../../../cli/options/build.js';
import { timeoutOption } from '../../../cli/options/timeout.js';
import { defaultFormat, formatIds } from '../../../formats/precision/formats/index.js';
import { benchTools } from '../../../quality/bench/bench-engine.js';
import { benchPlaceOptions } from '../../../quality/bench/options.js';
import {
  inputOptions,
  limitOptions,
  nameOptions,
  type StreamsRequest,
  sizingOptions,
  streamsModeOptions,
} from '../options.js';
import type { StreamsSetup } from '../setup.js';

const recipe = {
  target: buildOptions.target,
  toolchain: buildOptions.toolchain,
  precision: {
    ...buildOptions.precision,
    describe: `${formatIds.join(', ')} convert the model first; as-is builds the graph's own types`,
    choices: [...formatIds, 'as-is'],
    default: defaultFormat.id,
  },
  weaklyTyped: buildOptions.weaklyTyped,
};

export const sizeOptions = {
  ...{ fps: limitOptions.fps },
  ...nameOptions,
  ...limitOptions,
  ...sizingOptions,
  ...inputOptions,
  with: choice({
    flags: '--with <tool>',
    describe: 'what measures: trtforge itself, or the trtexec of the toolchain',
    choices: benchTools,
    default: 'trtforge',
  }),
  ...streamsModeOptions,
  device: { ...benchPlaceOptions.device, describe: 'which of the visible GPUs builds and measures' },
  ...recipe,
  workspace: buildOptions.workspace,
  builderConfig: buildOptions.builderConfig,
  plugins: buildOptions.plugins,
  ...builderOption,
  ...timeoutOption,
  store: storeOptions.store,
  noCache: storeOptions.noCache,
};

export type SizeOptionValues = OptionValues<typeof sizeOptions>;

export const streamsRequest = (model: string, options: SizeOptionValues): StreamsRequest => ({
  model,
  names: valuesOf(nameOptions, options),
  input: valuesOf(inputOptions, options),
  limits: valuesOf(limitOptions, options),
  ...valuesOf(sizingOptions, options),
});

export function streamsSetup(model: string, options: SizeOptionValues): StreamsSetup {
  const { builder, device, plugins } = options;
  return {
    build: {
      ...{ model, plugins },
      ...valuesOf(recipe, options),
      settings: builderSettingsOf(options),
      store: options.noCache ? false : options.store,
      forceRebuild: options.fresh && !options.noCache,
    },
    builder,
    meter: options.with,
    mode: valuesOf(streamsModeOptions, options),
    device,
  };
}
