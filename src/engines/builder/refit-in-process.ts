import { basename } from 'node:path';
import { loadAddon } from '../../addon/addon.js';
import type { NativeEngine } from '../../addon/native-engine.js';
import type { WorkContext } from '../../events.js';
import { withRemedy } from '../runtime/tensorrt/load-engine.js';
import { nativeLoad } from '../runtime/tensorrt/options.js';
import { workEvents } from './build-in-process.js';
import type { BuildFiles, BuildOutcome, ResolvedBuild } from './options.js';

/** Loads an engine, replaces its weights and writes it, in this very process. Its tensors are the caller's to state. Errors as `refittingBuilder`. */
export async function refitInProcess(
  { toolchain, pluginPaths, verbose }: ResolvedBuild,
  { modelPath, planPath }: BuildFiles,
  refit: Omit<Parameters<NativeEngine['refit']>[0], 'modelPath'> & {
    /** The plan whose weights are replaced. */
    readonly planPath: string;
    readonly load: Parameters<typeof nativeLoad>[0];
    /** Bits of `SerializationFlag`. */
    readonly flags: number;
  },
  { emit = () => {} }: WorkContext,
): Promise<BuildOutcome> {
  const { planPath: skeleton, flags, load, ...weights } = refit;
  const started = performance.now();
  const { inference, plugins } = toolchain.libraries;
  const warnings = new Set<string>();
  const listener = workEvents(toolchain.product, emit, warnings);
  const engine = await loadAddon()
    .openEngine(
      {
        inferenceLibrary: inference,
        pluginLibrary: plugins,
        pluginPaths,
        planPath: skeleton,
        label: basename(skeleton),
        // The chosen GPU is the only one that this process sees.
        device: 0,
        ...nativeLoad(load),
        verbose,
      },
      listener,
    )
    .done.catch((error) => {
      throw withRemedy(error);
    });
  try {
    await engine.refit({ ...weights, modelPath }, listener).done;
    const bytes = await engine.serialize(planPath, flags).done;
    return {
      buildMs: performance.now() - started,
      bytes,
      libraryVersion: engine.facts.libraryVersion,
      layers: null,
      inputs: [],
      outputs: [],
      timingCache: 'none',
      peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
      warnings: [...warnings],
    };
  } finally {
    await engine.close().done;
  }
}
