import { type EventListener, ignoreEvents, type LogSeverity } from '../../events.js';
import type { TrtexecLine, TrtexecSeverity } from './log/lines.js';

const SEVERITIES: Readonly<Record<TrtexecSeverity, LogSeverity>> = {
  F: 'internal_error',
  E: 'error',
  W: 'warning',
  I: 'info',
  V: 'verbose',
};

/** The line that opens each phase of a build or a measurement, in the words of 8.6 to 11. */
const PHASES: readonly { readonly opens: RegExp; readonly phase: string }[] = [
  { opens: /^Loading standard plugins/, phase: 'load libraries' },
  { opens: /^Start parsing network model/, phase: 'parse' },
  { opens: /^(?:Finished parsing network model|Graph optimization time)/, phase: 'optimize graph' },
  { opens: /^(?:Global|Local) timing cache in use|^Timing cache disabled/, phase: 'choose kernels' },
  { opens: /^Detected \d+ inputs and \d+ output network tensors/, phase: 'generate engine' },
  { opens: /^(?:Engine built in|Created engine with size)/, phase: 'load engine' },
  { opens: /^Starting inference/, phase: 'measure' },
  { opens: /^(?:Skipped inference phase|=== Trace details|=== Performance summary)/, phase: 'report' },
];

/** A verbose log names every layer whose kernels it times. */
const TIMED_LAYER = /^(?:\*+ Autotuning|=+ Computing costs for (.*)$|-+ Timing Runner: (.*?)(?: \(|$))/;

const PROGRESS_INTERVAL_MS = 100;

/** Turns the lines of a run into work events: phases, the layers timed where the log shows them, and the lines themselves. */
export class RunProgress {
  private current: { readonly phase: string; readonly at: number } | undefined;
  private timedLayers = 0;
  private reportedAt = 0;

  constructor(private readonly emit: EventListener = ignoreEvents) {}

  take(line: TrtexecLine): void {
    const { severity, message } = line;
    if (severity === 'V') this.countLayers(message);
    else if (severity === 'I') this.openPhase(message);
    if (message.trim() === '' || message.startsWith('Average on ')) return;
    this.emit({
      type: 'log',
      source: 'trtexec',
      severity: severity === null ? 'info' : SEVERITIES[severity],
      message,
    });
  }

  private openPhase(message: string): void {
    const phase = PHASES.find(({ opens }) => opens.test(message))?.phase;
    if (phase === undefined || phase === this.current?.phase) return;
    this.end();
    this.current = { phase, at: performance.now() };
    this.emit({ type: 'phase-start', phase });
  }

  private countLayers(message: string): void {
    const found = TIMED_LAYER.exec(message);
    if (found === null || this.current === undefined) return;
    this.timedLayers++;
    if (performance.now() - this.reportedAt < PROGRESS_INTERVAL_MS) return;
    this.reportedAt = performance.now();
    const detail = found[1] ?? found[2];
    this.emit({
      type: 'progress',
      phase: this.current.phase,
      done: this.timedLayers,
      detail,
    });
  }

  /** Ends the phase that is open. */
  end(): void {
    if (this.current === undefined) return;
    const { phase, at } = this.current;
    this.emit({ type: 'phase-end', phase, ms: performance.now() - at });
    this.current = undefined;
  }
}
