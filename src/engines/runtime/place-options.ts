import * as is from '../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../base/options/option.js';
import { parseSetting } from '../../base/options/readers.js';

const onnxRuntime = { group: 'ONNX Runtime', advanced: true } as const;

/** Where a model or an engine runs. */
export const placeOptions = {
  /** Which back end runs a model; default `cpu`. */
  provider: optional(is.text, {
    flags: '--provider <provider>',
    describe:
      'models: what of ONNX Runtime runs them (default: cpu); cuda and tensorrt need libraries of their own and are an error without, never the CPU instead',
  }),
  /** Ordinal of the GPU among the visible ones; default 0. */
  device: optional(is.whole(0), {
    flags: '--device <number>',
    describe: 'engines, and models on a GPU: which of the visible GPUs (default: 0)',
  }),
  /** Options of the provider (`use_tf32: '1'`, `trt_engine_cache_enable: '1'`), and session configuration entries, which have a dot in their key. */
  providerOptions: optional(is.object<Readonly<Record<string, string>>>(), {
    flags: '--provider-option <key=value>',
    ...onnxRuntime,
    trust: true,
    describe:
      'models: an option of the provider (use_tf32=1, trt_engine_cache_enable=1), or with a dot in its key an entry of the session',
    parse: parseSetting,
    repeat: true,
    make: Object.fromEntries<string>,
  }),
  /** A libonnxruntime.so, or a folder of an installation; default: what ORT_HOME names, else the first that has the provider. */
  onnxRuntime: optional(is.text, {
    flags: '--onnxruntime <path>',
    ...onnxRuntime,
    trust: true,
    describe:
      'models: the libonnxruntime.so, or a folder of its installation (default: ORT_HOME, else the first that has the provider)',
  }),
  /** Whether nodes that the provider does not take may run elsewhere; without it that is TF_PROVIDER_FALLBACK. */
  allowFallback: optional(is.flag, {
    flags: '--allow-fallback',
    ...onnxRuntime,
    describe: 'models: run nodes elsewhere that the provider does not take; results list them',
  }),
};

export interface PlaceOptions extends OptionsOf<typeof placeOptions> {}
