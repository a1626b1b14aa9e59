import { existsSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { sha256OfFile } from '../../base/files/digest.js';
import { readJson } from '../../base/files/files.js';
import { publishFile } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import type { MeasuredFacts, StreamsEngine, StreamsMeter } from './effects.js';
import type { StreamsMode } from './options.js';
import { type MeasurementRecord, measurementRecordSchema, type StreamsMeasurement } from './result.js';
import { readStreamsLog, type StreamsLog } from './trtexec-form-log.js';

/** Beside the log: what the log does not contain, and which engine and mode it belongs to. */
export const recordPath = (logPath: string): string => logPath.replace(/\.log$/, '.json');

/** The measurement that lies on disk when its log is whole and it is of this engine, batch, tool, mode and GPU model; null otherwise. */
export function storedMeasurement(
  engine: StreamsEngine,
  batch: number,
  { tool, mode, gpu }: Pick<StreamsMeter, 'tool' | 'mode' | 'gpu'>,
  logPath: string,
): StreamsMeasurement | null {
  const record = readRecord(recordPath(logPath));
  if (record === null || record.batch !== batch || record.engine.sha256 !== engine.sha256) return null;
  if (record.tool !== tool || !sameMode(record.mode, mode)) return null;
  // An engine also runs on other models of its architecture, as fast as those are.
  if (gpu !== null && record.gpu !== null && record.gpu !== gpu) return null;
  if (!existsSync(logPath) || sha256OfFile(logPath) !== record.log.sha256) return null;
  return measurementOf(record, readStreamsLog(logPath), logPath, 'disk');
}

/** Measures one batch: the older record goes first and the new one comes last, so that a kill in between leaves nothing that is trusted. */
export async function measureAndRecord(
  meter: StreamsMeter,
  engine: StreamsEngine,
  batch: number,
  logPath: string,
): Promise<StreamsMeasurement> {
  rmSync(recordPath(logPath), { force: true });
  const started = performance.now();
  const facts = await meter.measure(engine, batch, logPath);
  const record = recordOf(meter, engine, batch, logPath, facts, (performance.now() - started) / 1000);
  const measurement = measurementOf(record, readStreamsLog(logPath), logPath, 'measured');
  if (measurement === null) {
    throw new TrtforgeError(
      'TF_INTERNAL',
      `${logPath} has no whole measurement of batch ${batch} although measuring ended well.`,
    );
  }
  publishFile(recordPath(logPath), `${JSON.stringify(record, null, 2)}\n`);
  return measurement;
}

function recordOf(
  { tool, mode }: StreamsMeter,
  { path, sha256, bytes, maxBatch }: StreamsEngine,
  batch: number,
  logPath: string,
  facts: MeasuredFacts,
  seconds: number,
): MeasurementRecord {
  return {
    schema: 'trtforge.deepstream-measurement/1',
    batch,
    engine: { file: basename(path), sha256, bytes, maxBatch },
    tool,
    mode: { ...mode },
    log: { sha256: sha256OfFile(logPath) },
    seconds,
    ...facts,
    warnings: [...facts.warnings],
    at: new Date().toISOString(),
  };
}

function measurementOf(
  record: MeasurementRecord,
  log: StreamsLog,
  logPath: string,
  source: StreamsMeasurement['source'],
): StreamsMeasurement | null {
  const figures = figuresOf(log, record.batch);
  if (figures === null) return null;
  const { batch, engine, seconds, backend, gpu, graph, contextBytes, gpuBytes, warnings } = record;
  return {
    batch,
    engineMaxBatch: engine.maxBatch,
    ...figures,
    seconds,
    log: logPath,
    source,
    writtenBy: log.writtenBy,
    backend,
    gpu,
    graph,
    contextBytes: contextBytes ?? log.contextBytes,
    gpuBytes: gpuBytes ?? log.gpuBytes,
    warnings,
  };
}

/** The figures of a whole log; null where it is cut short, or of another batch than it should be. */
export function figuresOf(
  log: StreamsLog,
  batch: number,
): Pick<StreamsMeasurement, 'qps' | 'imagesPerSecond' | 'gpuMeanMs' | 'gpuMsPerImage' | 'gpuP99Ms'> | null {
  const { isComplete, qps, gpuMeanMs, gpuP99Ms, firstDims } = log;
  if (!isComplete || qps === null || gpuMeanMs === null) return null;
  if (firstDims.length > 0 && !firstDims.includes(batch)) return null;
  return { qps, imagesPerSecond: qps * batch, gpuMeanMs, gpuMsPerImage: gpuMeanMs / batch, gpuP99Ms };
}

function readRecord(path: string): MeasurementRecord | null {
  // Not there, not readable or not JSON: the batch is measured again.
  const parsed = measurementRecordSchema.safeParse(readJson(path));
  return parsed.success ? parsed.data : null;
}

const sameMode = (a: StreamsMode, b: StreamsMode): boolean =>
  a.warmUpMs === b.warmUpMs &&
  a.durationMs === b.durationMs &&
  a.graph === b.graph &&
  a.spinWait === b.spinWait;
