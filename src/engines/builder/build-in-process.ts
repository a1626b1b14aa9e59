import { beginFile, type PendingFile } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import { type EventListener, logSeverities } from '../../events.js';
import { dtypeFromTensorrt } from '../../formats/tensor/dtype.js';
import {
  type Addon,
  loadAddon,
  type NativeBuildRequest,
  type NativeTensor,
} from '../../tensorrt/addon/addon.js';
import type { NativeEvent } from '../../tensorrt/addon/native-job.js';
import type { BuildOutcome, BuildRequest } from './build-request.js';
import { type BuilderSettings, builderSettings } from './builder-settings.js';
import { withNodeNames } from './parser-errors.js';

export interface InProcessOptions {
  readonly emit: EventListener;
  readonly signal?: AbortSignal;
  readonly verbose?: boolean;
  readonly addon?: Addon;
  /** Leaves the builder as it is when it is done, for a process that ends then; default false. */
  readonly keepBuilder?: boolean;
}

/**
 * Builds a plan in this very process: what `buildPlan` does in its child. An abort inside the library ends the process, and the library keeps
 * some of its memory until the process ends. Errors as `buildPlan`.
 */
export async function buildInProcess(
  request: BuildRequest,
  options: InProcessOptions,
): Promise<BuildOutcome> {
  const addon = options.addon ?? loadAddon();
  const library = addon.probe(request.toolchain.libraries.inference);
  // What the library says of itself decides: numbers of flags differ between majors.
  const resolved = builderSettings(request.recipe, { ...request.toolchain, ...library });
  const cache = request.timingCachePath === null ? null : beginFile(request.timingCachePath);
  const warnings = new Set<string>();
  const tell = eventTeller(library.product, options.emit, warnings);
  try {
    const job = addon.build(
      nativeRequest(request, cache, {
        ...resolved,
        verbose: options.verbose ?? false,
        keepBuilder: options.keepBuilder ?? false,
      }),
      tell,
    );
    const result = await cancellable(job, options.signal);
    cache?.publish();
    return {
      schema: 'trtforge.build-outcome/1',
      buildMs: result.buildMs,
      bytes: result.bytes,
      libraryVersion: result.libraryVersion,
      layers: result.layers,
      timingCache: result.timingCache,
      peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
      warnings: [...warnings],
      inputs: result.inputs.map(describeTensor),
      outputs: result.outputs.map(describeTensor),
    };
  } catch (error) {
    cache?.discard();
    throw withNodeNames(error, request.modelPath);
  }
}

function nativeRequest(
  request: BuildRequest,
  cache: PendingFile | null,
  resolved: BuilderSettings & Pick<NativeBuildRequest, 'verbose' | 'keepBuilder'>,
): NativeBuildRequest {
  const { inference, parser, plugins } = request.toolchain.libraries;
  if (parser === null) {
    throw new TrtforgeError(
      'TF_LIBRARY_LOAD_FAILED',
      `${inference} is a runtime without an ONNX parser beside it, so nothing can be built with it.`,
      {
        remedy: 'Install the whole toolchain (libnvonnxparser), or choose another: trtforge toolchain list.',
      },
    );
  }
  return {
    ...resolved,
    inferenceLibrary: inference,
    parserLibrary: parser,
    pluginLibrary: plugins,
    modelPath: request.modelPath,
    planPath: request.planPath,
    profiles: request.recipe.profiles.map((profile) =>
      Object.entries(profile).map(([input, range]) => ({ input, ...range })),
    ),
    computeCapabilities: [...request.computeCapabilities],
    pluginPaths: [...request.pluginPaths],
    timingCachePath: request.timingCachePath,
    timingCacheOutputPath: cache?.temporaryPath ?? null,
  };
}

async function cancellable<T>(
  job: { readonly done: Promise<T>; cancel(): void },
  signal?: AbortSignal,
): Promise<T> {
  const cancel = () => job.cancel();
  if (signal?.aborted) cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    return await job.done;
  } finally {
    signal?.removeEventListener('abort', cancel);
  }
}

const describeTensor = (tensor: NativeTensor) => ({
  name: tensor.name,
  dtype: dtypeFromTensorrt(tensor.dtype) ?? `tensorrt-${tensor.dtype}`,
  shape: tensor.shape.map((dimension) => (dimension < 0 ? null : dimension)),
});

/** Turns what the library says into work events: its outer phases are phases, what goes on inside is the detail of their progress. */
function eventTeller(
  source: string,
  emit: EventListener,
  warnings: Set<string>,
): (event: NativeEvent) => void {
  const phases = new Map<string, { readonly started: number; readonly steps: number; done: number }>();
  let current = '';

  const tellProgress = (phase: string, detail?: string) => {
    const state = phases.get(phase);
    if (state === undefined) return;
    emit({
      type: 'progress',
      phase,
      done: state.done,
      total: state.steps,
      ...(detail === undefined ? {} : { detail }),
    });
  };

  return (event) => {
    switch (event.type) {
      case 'log': {
        const severity = logSeverities[event.severity] ?? 'info';
        if (severity === 'warning') warnings.add(event.message);
        return emit({ type: 'log', source, severity, message: event.message });
      }
      case 'phase-start':
        phases.set(event.phase, { started: performance.now(), steps: event.steps, done: 0 });
        current = event.phase;
        return emit({ type: 'phase-start', phase: event.phase });
      case 'step': {
        const state = phases.get(event.phase);
        if (state !== undefined) state.done = event.step + 1;
        return tellProgress(event.phase);
      }
      case 'inside':
        return tellProgress(
          current,
          event.step < 0 ? event.phase : `${event.phase} ${event.step + 1}/${event.steps}`,
        );
      case 'phase-end': {
        const state = phases.get(event.phase);
        if (state === undefined) return;
        phases.delete(event.phase);
        return emit({ type: 'phase-end', phase: event.phase, ms: performance.now() - state.started });
      }
    }
  };
}
