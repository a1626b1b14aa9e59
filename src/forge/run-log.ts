import { closeSync, openSync, writeSync } from 'node:fs';
import { makeFolder } from '../base/files/folders.js';
import { writeFailed } from '../base/files/publish.js';
import type { EventListener, WorkEvent } from '../events.js';
import type { Clock, PhaseLog } from './phase-run.js';

/** Where the logs of phases go: their folder, and the file of each phase that has one. */
interface LogPlaces {
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
