import { readTrtexecLog } from '../../tensorrt/trtexec/log/log.js';
import type { TrtexecLog } from '../../tensorrt/trtexec/log/result.js';
import { WRITTEN_BY } from './log-text.js';

/** The content of a log of one measurement, and the program that wrote it. */
export interface StreamsLog {
  readonly writtenBy: 'trtforge' | 'trtexec' | 'unknown';
  /** Ended with its summary, and by its own word well. */
  readonly isComplete: boolean;
  readonly qps: number | null;
  readonly gpuMeanMs: number | null;
  readonly gpuP99Ms: number | null;
  /** First dimensions of the shapes echoed; one of them is the batch. Empty where none was. */
  readonly firstDims: readonly number[];
  readonly engine: string | null;
  readonly transfers: boolean | null;
  readonly graph: boolean | null;
  readonly spinWait: boolean | null;
  readonly gpu: string | null;
  readonly contextBytes: number | null;
  readonly gpuBytes: number | null;
  /** Warm-up and measured time, by the log. */
  readonly seconds: number | null;
  /** trtexec's own doubts. */
  readonly warnings: readonly string[];
}

const MIB = 1 << 20;

/**
 * Reads a log of trtexec or one written by `streamsLogText`, in constant memory. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE.
 */
export function readStreamsLog(path: string): StreamsLog {
  const log = readTrtexecLog(path);
  const { performance, measurement, device, engine, run } = log;
  const qps = performance?.throughputQps ?? null;
  const gpu = performance?.gpuCompute ?? null;
  const isOurs = log.options.reporting[WRITTEN_BY] !== undefined;
  // Ours appears whole or not at all, and its summary is its end.
  const isEnded = isOurs ? performance?.hostWalltimeSeconds != null : log.outcome === 'passed';
  const gpuMeanMs = gpu?.mean ?? null;
  return {
    writtenBy: isOurs ? 'trtforge' : log.runs > 0 ? 'trtexec' : 'unknown',
    isComplete: isEnded && qps !== null && gpuMeanMs !== null,
    qps,
    gpuMeanMs,
    gpuP99Ms: gpu?.percentiles.find(({ percent }) => percent === 99)?.ms ?? null,
    firstDims: [...new Set(Object.values(measurement.shapes).flatMap((shape) => shape[0] ?? []))],
    engine: log.build.loadEngine ?? engineInCommand(log.commandLine),
    transfers: measurement.transfers,
    graph: run.graphCaptured ?? measurement.cudaGraph,
    spinWait: measurement.spinWait,
    gpu: device.name,
    contextBytes: engine.contextBytes,
    gpuBytes: device.memoryMiB === null ? null : device.memoryMiB * MIB,
    seconds: secondsOf(log),
    warnings: log.warnings.map(({ message }) => message.replace(/^\s*\*\s*/, '')).filter(isDoubt),
  };
}

/** From 10 on trtexec echoes no build options where it builds nothing, and the engine stands on its command line alone. */
const engineInCommand = (command: string | null): string | null =>
  / --loadEngine=(.+?)(?= --|$)/.exec(command ?? '')?.[1] ?? null;

/** Remarks that trtexec makes on its own figures; the rest of its warnings are about loading. */
const isDoubt = (message: string): boolean =>
  /^Throughput may be bound by|^GPU compute time is unstable|^Multiple inference streams/.test(message);

function secondsOf({ performance, measurement }: TrtexecLog): number | null {
  const wall = performance?.hostWalltimeSeconds ?? null;
  return wall === null ? null : wall + (measurement.warmUpMs ?? 0) / 1000;
}
