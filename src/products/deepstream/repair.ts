import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import { readTrtexecLog } from '../../tensorrt/trtexec/log/log.js';
import { bodyOf, finishResult, unique } from './assemble.js';
import { checkLimits, type StreamsLimits } from './decision.js';
import { maxBatchOfEngine, type NameOptions, StreamsPaths, streamsNames } from './names.js';
import { figuresOf, isOfAnotherBatch } from './record.js';
import type { StreamsMeasurement, StreamsResult } from './result.js';
import { readStreamsLog, type StreamsLog } from './streams-log.js';

export interface FromLogsRequest {
  /** Path of the ONNX model, which need not be there any more. */
  readonly model: string;
  readonly names: NameOptions;
  readonly limits: StreamsLimits;
}

/** Writes benchmark_data.json anew from the logs alone: no GPU, engine or model is needed. Errors: those of `checkLimits`, `streamsNames` and `sizingFromLogs`, TF_WRITE_FAILED. */
export function streamsFromLogs({ model, names: requested, limits }: FromLogsRequest): StreamsResult {
  checkLimits(limits);
  const names = streamsNames(model, requested);
  const paths = new StreamsPaths(names);
  const { baseline, engines, warnings } = sizingFromLogs(paths);
  const stages = engines.map(({ maxBatch, buildSeconds, peak }) => ({
    maxBatch,
    buildSeconds,
    peak: {
      imagesPerSecond: peak.imagesPerSecond,
      seconds: peak.seconds,
      contextBytes: peak.contextBytes,
      gpuBytes: peak.gpuBytes,
      planBytes: null,
    },
  }));
  const body = bodyOf(names, paths, limits, {
    engines: engines.map(({ maxBatch, buildSeconds, peak }) => ({
      maxBatch,
      path: paths.engine(maxBatch),
      bytes: null,
      sha256: null,
      identity: null,
      buildSeconds,
      source: 'logs' as const,
      peak,
    })),
    stages,
    baseline,
    stop: { reason: 'from-logs', text: 'Everything was read from logs; nothing was built or measured.' },
  });
  return finishResult(paths, { ...body, warnings: unique([...warnings, ...body.warnings]) });
}

/** The figures in the logs of a model's `benchmarks` folder, without engine, model or GPU. */
interface LoggedSizing {
  readonly baseline: StreamsMeasurement | null;
  /** By rising batch: each its own engine's largest. */
  readonly engines: readonly {
    readonly maxBatch: number;
    readonly peak: StreamsMeasurement;
    readonly buildSeconds: number | null;
  }[];
  readonly warnings: readonly string[];
}

/**
 * Reads `b{N}/trtexec_b{N}.log`, trtexec's or ours. A log that is cut short, of another batch than its folder, or of an engine with another largest
 * batch is left out and named; batches are compared as numbers. Throws TF_FILE_NOT_FOUND when no whole log is there.
 */
function sizingFromLogs(paths: StreamsPaths): LoggedSizing {
  const warnings: string[] = [];
  const measured = batchesIn(paths.benchmarks).flatMap((batch) => {
    const read = measurementFromLog(paths.log(batch), batch);
    if ('why' in read) warnings.push(read.why);
    return 'measurement' in read ? [read.measurement] : [];
  });
  const larger = measured.filter((one) => one.batch > 1 && isOwnPeak(one));
  // A model that was sized with max batch 1 has but one log, which is both.
  const peaks = larger.length === 0 ? measured.filter(isOwnPeak) : larger;
  const others = measured.filter((one) => one.batch > 1 && !isOwnPeak(one));
  for (const { log, engineMaxBatch } of others)
    warnings.push(
      `${log} was measured on the engine of max batch ${engineMaxBatch}, so it is not its largest batch and is left out.`,
    );
  if (peaks.length === 0) {
    throw new TrtforgeError(
      'TF_FILE_NOT_FOUND',
      `${paths.benchmarks} has no whole log b{N}/trtexec_b{N}.log.`,
      {
        remedy: `Run \`trtforge deepstream size\`, or name the folder that holds models/ with --root.${warnings.length === 0 ? '' : ` ${warnings.join(' ')}`}`,
      },
    );
  }
  return {
    baseline: measured.find(({ batch }) => batch === 1) ?? null,
    engines: peaks.map((peak) => ({
      maxBatch: peak.batch,
      peak,
      buildSeconds: builtSeconds(paths, peak.batch, peaks[0]?.batch === peak.batch),
    })),
    warnings,
  };
}

/** Whether a batch is the largest of the engine that its log names; a log that names none is trusted. */
const isOwnPeak = ({ batch, engineMaxBatch }: StreamsMeasurement): boolean =>
  engineMaxBatch === null || engineMaxBatch === batch;

function batchesIn(folder: string): readonly number[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names
    .flatMap((name) => {
      const digits = /^b([1-9]\d{0,8})$/.exec(name)?.[1];
      return digits !== undefined && existsSync(join(folder, name, `trtexec_${name}.log`))
        ? [Number(digits)]
        : [];
    })
    .sort((a, b) => a - b);
}

function measurementFromLog(
  path: string,
  batch: number,
): { readonly measurement: StreamsMeasurement } | { readonly why: string } {
  const log = readableLog(path);
  if (log === null) return { why: `${path} cannot be read, so it is left out.` };
  const figures = figuresOf(log, batch);
  if (figures === null) {
    const why = isOfAnotherBatch(log, batch)
      ? `is of batch ${log.firstDims.join(' or ')}`
      : 'is cut short or of a run that failed';
    return { why: `${path} ${why}, so it is left out.` };
  }
  const warnings = [...log.warnings];
  if (log.transfers === true)
    warnings.push(
      'Data were copied in every inference (no --noDataTransfers), so the figures are too low for DeepStream.',
    );
  return {
    measurement: {
      batch,
      engineMaxBatch: log.engine === null ? null : maxBatchOfEngine(basename(log.engine)),
      ...figures,
      seconds: log.seconds,
      log: path,
      source: 'disk',
      writtenBy: log.writtenBy,
      backend: null,
      gpu: log.gpu,
      graph: log.graph,
      contextBytes: log.contextBytes,
      gpuBytes: log.gpuBytes,
      warnings,
    },
  };
}

function readableLog(path: string): StreamsLog | null {
  try {
    return readStreamsLog(path);
  } catch (error) {
    if (error instanceof TrtforgeError) return null;
    throw error;
  }
}

/** The time of the newest build log of this engine; null where none reports. The first engine's has no batch in its name. */
function builtSeconds(paths: StreamsPaths, maxBatch: number, isFirst: boolean): number | null {
  const names = existsSync(paths.engines) ? readdirSync(paths.engines) : [];
  const stem = /^.*\/(.*)_\d{8}_\d{6}\.log$/.exec(paths.buildLog(maxBatch, isFirst, new Date(0)))?.[1] ?? '';
  const logs = names.filter(
    (name) => name.startsWith(stem) && /^_\d{8}_\d{6}\.log$/.test(name.slice(stem.length)),
  );
  const newest = logs.sort().at(-1);
  return newest === undefined ? null : readTrtexecLog(join(paths.engines, newest)).engine.builtSeconds;
}

/**
 * The ONNX path that a folder `models/NAME` was sized from, as far as names go: the file need not be there. Its name is that of the engines.
 * Throws TF_USAGE when the folder has none, or those of several models.
 */
export function modelOfFolder(folder: string): string {
  const engines = join(folder, 'benchmarks', 'engines');
  const names = existsSync(engines) ? readdirSync(engines) : [];
  const stems = new Set(
    names.flatMap((name) => /^([^.].*)_dynamic_b(?:\d+\.engine|uild_.*\.log)$/.exec(name)?.[1] ?? []),
  );
  const [only] = stems;
  if (only !== undefined && stems.size === 1) return join(folder, 'model', `${only}.onnx`);
  const what = stems.size === 0 ? 'no engine and no build log' : `those of ${[...stems].join(', ')}`;
  throw new TrtforgeError('TF_USAGE', `${engines} has ${what}, so the model's file name is not known.`, {
    remedy: 'Name the ONNX file: models/NAME/model/FILE.onnx. It need not be there.',
  });
}
