import { statSync } from 'node:fs';
import { type Addon, loadAddon } from '../../addon/addon.js';
import { valuesOf } from '../../base/options/option.js';
import { medianOf } from '../../base/statistics.js';
import { formatBytes } from '../../base/text/quantity.js';
import { loadOptions } from '../../engines/runtime/tensorrt/options.js';
import { environmentFor } from '../../engines/runtime/tensorrt/supervised-engine.js';
import { inPhase } from '../../events.js';
import { leaseGpu } from './gpu-lease.js';
import type { ColdStart, StartMeasurer } from './measurer.js';
import type { BenchContext, BenchRequest } from './options.js';
import { type ColdPhase, type ColdStarts, coldPhases } from './result.js';

/** Cold starts of each side: with the page cache as it is, and without it. */
const STARTS = 5;

interface Measured {
  readonly cold: ColdStarts;
  readonly warnings: readonly string[];
}

/**
 * Starts an engine in new processes, in turns with the page cache as it is and without the plan and TensorRT's libraries in it. No process of ours may have
 * them open, for pages that a process maps do not leave. `uuid` names the GPU. Errors: those of `benchEngine`, TF_FILE_UNREADABLE.
 */
export async function coldStarts(
  request: BenchRequest,
  context: BenchContext,
  start: StartMeasurer,
  uuid: string,
  addon: Pick<Addon, 'dropFromCache'> = loadAddon(),
): Promise<Measured> {
  const { engine, device, shapes, inputs, mode } = request;
  const environment = await environmentFor(engine, request, context.environment);
  const opening = { engine, device, shapes, inputs, graph: mode.graph, ...valuesOf(loadOptions, request) };
  const once = async (detail: string): Promise<ColdStart> => {
    const measurer = start({ ...context, environment, doing: `starting ${engine}` });
    try {
      return await inPhase('cold start', context.emit, () => measurer.cold(opening), detail);
    } finally {
      await measurer.close();
    }
  };
  const sides: Record<'warm' | 'dropped', ColdStart[]> = { warm: [], dropped: [] };
  const stayed = new Map<string, number | null>();
  const lease = await leaseGpu(uuid, request.wait, context);
  try {
    for (let at = 1; at <= STARTS; at++) {
      const warm = await once(`${at} of ${STARTS}, page cache as it is`);
      for (const path of [engine, ...warm.libraries]) {
        const left = await addon.dropFromCache(path).done;
        stayed.set(path, left === null ? null : Math.max(left, stayed.get(path) ?? 0));
      }
      sides.warm.push(warm);
      sides.dropped.push(await once(`${at} of ${STARTS}, page cache dropped`));
    }
  } finally {
    lease.release();
  }
  const files = [...stayed].map(([path, stayedBytes]) => ({ path, bytes: statSync(path).size, stayedBytes }));
  return {
    cold: { starts: STARTS, warm: sideOf(sides.warm), dropped: sideOf(sides.dropped), files },
    warnings: [...(lease.warning === null ? [] : [lease.warning]), ...files.flatMap(stayWarning)],
  };
}

const stayWarning = ({ path, bytes, stayedBytes }: ColdStarts['files'][number]): string[] =>
  stayedBytes === 0
    ? []
    : [
        stayedBytes === null
          ? `Whether ${path} left the page cache is unknown: the kernel shows it to who may write to the file.`
          : `${formatBytes(stayedBytes)} of ${formatBytes(bytes)} of ${path} stayed in the page cache, as another process uses the file or it is in a file system in memory: a start after a reboot takes longer.`,
      ];

function sideOf(starts: readonly ColdStart[]): ColdStarts['warm'] {
  const spread = (phase: ColdPhase) => {
    const ms = starts.flatMap((start) => start.ms[phase] ?? []);
    return ms.length < starts.length
      ? null
      : { median: medianOf(ms), min: Math.min(...ms), max: Math.max(...ms) };
  };
  return {
    ms: Object.fromEntries(coldPhases.map((phase) => [phase, spread(phase)])) as ColdStarts['warm']['ms'],
    hostMemory: starts.at(-1)!.hostMemory,
  };
}
