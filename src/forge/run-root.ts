import { closeSync, openSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readJson } from '../base/files/files.js';
import { makeFolder } from '../base/files/folders.js';
import { publishFile, writeFailed } from '../base/files/publish.js';
import type { EventListener, WorkEvent } from '../events.js';
import { forgeReport, RESULT_FILE } from '../report/pages/forge.js';
import { picturesOf, renderReport } from '../report/pages/read.js';
import type { ForgeResult } from '../report/result.js';
import type { Section } from '../report/section.js';
import type { Clock, PhaseLog } from './phase.js';

/** Where the parts of a run lie in its run root. */
export interface RunRoot {
  readonly path: string;
  readonly report: string;
  readonly markdown: string;
  readonly result: string;
  readonly timings: string;
  /** The typed model of a run, `model/resnet50.fp16.onnx`. */
  typedModel(modelPath: string, precision: string): string;
  readonly engines: string;
  /** The full result of one phase, as its own command would print it with `--json`. */
  stepResult(phase: string): string;
  readonly logs: string;
  log(phase: string): string;
}

export function runRootAt(path: string): RunRoot {
  return {
    path,
    report: join(path, 'report.html'),
    markdown: join(path, 'report.md'),
    result: join(path, RESULT_FILE),
    timings: join(path, 'timings.json'),
    typedModel: (modelPath, precision) => join(path, 'model', `${modelNameOf(modelPath)}.${precision}.onnx`),
    engines: join(path, 'engines'),
    stepResult: (phase) => join(path, 'steps', `${fileName(phase)}.json`),
    logs: join(path, 'logs'),
    log: (phase) => join(path, 'logs', `${fileName(phase)}.log`),
  };
}

export const defaultRunRoot = (modelPath: string, precision: string): string =>
  join('runs', `${modelNameOf(modelPath)}-${precision}`);

/** `models/resnet50.onnx` is the model `resnet50`. */
const modelNameOf = (modelPath: string): string => basename(modelPath).replace(/\.onnx$/i, '') || 'model';

const fileName = (phase: string): string => phase.replaceAll(' ', '-');

export function writeJson(path: string, value: unknown): void {
  publishFile(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** Whether the run root has the report of a run that came to its end. */
export function hasFinishedReport(root: RunRoot): boolean {
  const content = readJson(root.result);
  return typeof content === 'object' && content !== null && 'error' in content && content.error === null;
}

/** Writes every view of a result, the data first. */
export async function writeReport(
  root: RunRoot,
  result: ForgeResult,
  more: readonly Section[] = [],
): Promise<void> {
  writeJson(root.result, result);
  writeJson(root.timings, timingsOf(result));
  const report = { kind: forgeReport, result };
  publishFile(root.markdown, renderReport(report, 'markdown', more).content);
  publishFile(root.report, renderReport(report, 'html', more, await picturesOf(report, 'html')).content);
}

const timingsOf = ({ startedAt, totalMs, phases }: ForgeResult) => ({
  schema: 'trtforge.timings/1',
  startedAt,
  totalMs,
  phases: phases.map(({ name, status, startMs, ms, steps }) => ({ name, status, startMs, ms, steps })),
});

/** Where the logs of phases go: their folder, and the file of each phase that has one. */
export interface LogPlaces {
  readonly logs: string;
  log(phase: string): string | null;
}

export interface RunLog {
  readonly write: PhaseLog;
  /** Creates the folder of the logs and writes what was held back until then. Errors: TF_WRITE_FAILED. */
  begin(): void;
  close(): void;
}

/**
 * One log file per phase, of the lines that `lineOf` makes of its events (null: none). Lines are written as they come, not published at the end: after a
 * kill the last lines are what one looks for. Until `begin` they are held back: a run that cannot begin leaves no trace. A log that cannot be written
 * does not end the run: one warning is emitted, and logging stops.
 */
export function openRunLog(
  places: LogPlaces,
  lineOf: (event: WorkEvent) => string | null,
  emit: EventListener,
): RunLog {
  const descriptors = new Map<string, number>();
  let stopped = false;
  let held: (() => void)[] | undefined = [];
  const writeLine = (path: string, line: string) => {
    if (stopped) return;
    try {
      const descriptor = descriptors.get(path) ?? openSync(path, 'w');
      descriptors.set(path, descriptor);
      writeSync(descriptor, `${line}\n`);
    } catch (cause) {
      stopped = true;
      const { message } = writeFailed(path, cause);
      emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
    }
  };
  return {
    write: (phase, event) => {
      const path = places.log(phase);
      const line = path === null ? null : lineOf(event);
      if (path === null || line === null) return;
      if (held === undefined) writeLine(path, line);
      else held.push(() => writeLine(path, line));
    },
    begin: () => {
      if (held === undefined) return;
      try {
        makeFolder(places.logs);
      } catch (cause) {
        throw writeFailed(places.logs, cause);
      }
      const lines = held;
      held = undefined;
      for (const write of lines) write();
    },
    close: () => {
      for (const descriptor of descriptors.values()) closeSync(descriptor);
      descriptors.clear();
    },
  };
}

/** Lines of a run root's logs begin with the seconds since the run started. */
export const stampedLine =
  (clock: Clock) =>
  (event: WorkEvent): string | null => {
    const text = eventText(event);
    return text === null ? null : `${(clock() / 1000).toFixed(3).padStart(9)}  ${text}`;
  };

/** Progress is for the moment, not for the log. */
function eventText(event: WorkEvent): string | null {
  switch (event.type) {
    case 'phase-start':
      return `begin ${event.phase}${event.detail === undefined ? '' : ` ${event.detail}`}`;
    case 'phase-end':
      return `end ${event.phase} after ${event.ms.toFixed(1)} ms`;
    case 'phase-failed':
      return `fail ${event.phase} after ${event.ms.toFixed(1)} ms`;
    case 'phase-skipped':
      return `skip ${event.phase}: ${event.reason}`;
    case 'log':
      return `${event.severity} [${event.source}] ${event.message}`;
    case 'progress':
      return null;
  }
}
