import { statSync } from 'node:fs';
import { type Addon, loadAddon, type NativeTensor } from '../../addon/addon.js';
import type { NativeEvent } from '../../addon/native-job.js';
import { beginFile, type PendingFile } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import { type EventListener, ignoreEvents, logSeverities, type WorkContext } from '../../events.js';
import { viewModel } from '../../formats/onnx/model.js';
import { dtypeFromTensorrt } from '../../formats/tensor/dtype.js';
import { type BuilderSettings, builderSettings } from './builder-settings.js';
import type { BuildFiles, BuildOutcome, ResolvedBuild } from './options.js';
import { cachesRead } from './shared-timing-caches.js';

interface InProcessOptions extends WorkContext {
  readonly addon?: Addon;
  /** Leaves the builder as it is when it is done, for a process that ends then; default false. */
  readonly keepBuilder?: boolean;
}

/**
 * Builds a plan in this very process: what `buildPlan` does in its child. An abort inside the library ends the process, and the library keeps
 * some of its memory until the process ends. Errors as `buildPlan`.
 */
export async function buildInProcess(
  build: ResolvedBuild,
  files: BuildFiles,
  options: InProcessOptions,
): Promise<BuildOutcome> {
  const addon = options.addon ?? loadAddon();
  const library = addon.probe(build.toolchain.libraries.inference);
  // The library's own report decides: numbers of flags differ between majors.
  const settings = builderSettings(build.identity.recipe, { ...build.toolchain, ...library });
  const cache = build.timingCache === null ? null : beginFile(build.timingCache);
  const warnings = new Set<string>();
  const listener = workEvents(library.product, options.emit ?? ignoreEvents, warnings);
  try {
    const request = nativeRequest(build, files, cache, settings, options.keepBuilder ?? false);
    const { inputs, outputs, ...built } = await cancellable(addon.build(request, listener), options.signal);
    // The library stores nothing in one that it found to be invalid.
    if (cache !== null && statSync(cache.temporaryPath).size > 0) cache.publish();
    else cache?.discard();
    return {
      ...built,
      peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
      warnings: [...warnings],
      inputs: inputs.map(describeTensor),
      outputs: outputs.map(describeTensor),
    };
  } catch (error) {
    cache?.discard();
    throw withNodeNames(error, files.modelPath);
  }
}

function nativeRequest(
  { identity: { recipe, target }, toolchain, pluginPaths, verbose, ...build }: ResolvedBuild,
  files: BuildFiles,
  cache: PendingFile | null,
  settings: BuilderSettings,
  keepBuilder: boolean,
): Parameters<Addon['build']>[0] {
  const { inference, parser, plugins } = toolchain.libraries;
  if (parser === null) {
    throw new TrtforgeError(
      'TF_LIBRARY_LOAD_FAILED',
      `${inference} is a runtime without an ONNX parser beside it, so it cannot build.`,
      {
        remedy:
          'Install the whole toolchain (libnvonnxparser), or choose another: `trtforge toolchain list`.',
      },
    );
  }
  return {
    ...settings,
    ...files,
    verbose,
    keepBuilder,
    inferenceLibrary: inference,
    parserLibrary: parser,
    pluginLibrary: plugins,
    profiles: recipe.profiles.map((profile) =>
      Object.entries(profile).map(([input, range]) => ({ input, ...range })),
    ),
    // TensorRT builds for the GPU it runs on.
    computeCapabilities: target.product === 'tensorrt-rtx' ? target.computeCapabilities : [],
    pluginPaths: [...pluginPaths],
    timingCachePaths: cachesRead(build),
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

/** Turns the library's events into work events: its outer phases are phases, what goes on inside is the detail of their progress. */
export function workEvents(
  source: string,
  emit: EventListener,
  warnings: Set<string>,
): (event: NativeEvent) => void {
  const phases = new Map<string, { readonly started: number; readonly steps: number; done: number }>();
  let current = '';

  const reportProgress = (phase: string, detail?: string) => {
    const state = phases.get(phase);
    if (state === undefined) return;
    emit({ type: 'progress', phase, done: state.done, total: state.steps, detail });
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
        return reportProgress(event.phase);
      }
      case 'inside':
        return reportProgress(
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

/** One error of the ONNX parser, in the details of TF_MODEL_REJECTED. */
interface RejectedNode {
  readonly code: number;
  /** Index in the graph; -1 when the error is not about a node. */
  readonly node: number;
  readonly name: string | null;
  readonly operator: string | null;
  readonly description: string;
  readonly file: string | null;
  readonly line: number;
}

/** TensorRT 8.6 reports only the index of a node it rejects: name and operator are looked up in the model. Other errors come back as they are. */
function withNodeNames(error: unknown, modelPath: string): unknown {
  if (!(error instanceof TrtforgeError) || error.code !== 'TF_MODEL_REJECTED') return error;
  const nodes = error.details?.nodes as readonly RejectedNode[] | undefined;
  if (nodes === undefined || nodes.every(({ node, operator }) => node < 0 || operator !== null)) return error;
  const inModel = graphNodes(modelPath);
  const named = nodes.map((node) => {
    const found = inModel[node.node];
    return found === undefined ? node : { ...node, name: found.name || null, operator: found.opType };
  });
  const [first = ''] = error.message.split('\n');
  return new TrtforgeError('TF_MODEL_REJECTED', [first, ...named.map(sentence)].join('\n'), {
    remedy: error.remedy,
    cause: error,
    details: { ...error.details, nodes: named },
  });
}

function graphNodes(modelPath: string): readonly { readonly name: string; readonly opType: string }[] {
  try {
    return viewModel(modelPath, (model) => model.proto.graph?.node ?? []);
  } catch {
    // Unreadable for us too: the parser's own text stands.
    return [];
  }
}

function sentence({ node, name, operator, description }: RejectedNode): string {
  const where = operator === null ? `node ${node}` : `node ${name ?? node} (${operator})`;
  return node < 0 ? description : `${where}: ${description}`;
}
