import { formatMs } from '../base/text/quantity.js';
import type { EventListener, WorkEvent } from '../events.js';
import type { Colors } from './command.js';
import { type Console, colorsFor, printable, toJson } from './output.js';

export interface ProgressStyle {
  /** JSON lines on stderr instead of text. */
  readonly events: boolean;
  readonly quiet: boolean;
  /** Shows verbose log lines too. */
  readonly verbose: boolean;
}

export interface Progress {
  readonly listen: EventListener;
  /** States at once that Ctrl-C was seen: ending children takes its time. */
  cancelling(): void;
  /** Clears the live line; call before printing the result. */
  end(): void;
}

/** How often the live line moves. */
const TICK_MS = 100;

/** Shows events on stderr: a live line on a terminal, plain lines elsewhere, JSON lines with `--events`, nothing with `--quiet`. */
export function createProgress(console: Console, style: ProgressStyle): Progress {
  if (style.events) {
    const listen: EventListener = (event) =>
      console.err(toJson({ time: new Date().toISOString(), ...event }, 0));
    return {
      listen,
      cancelling: () => listen({ type: 'log', source: 'trtforge', severity: 'info', message: 'cancelling' }),
      end: () => {},
    };
  }
  const live = console.isTerminal.err && !style.quiet ? liveLine(console) : undefined;
  const colors = colorsFor(console, console.isTerminal.err);
  const print = (text: string) => {
    live?.clear();
    console.err(printable(text));
  };
  const listen: EventListener = (event) => {
    switch (event.type) {
      case 'phase-start':
        if (live !== undefined) live.start(event.phase, event.detail);
        else if (!style.quiet)
          print(`${event.phase} …${event.detail === undefined ? '' : ` ${event.detail}`}`);
        return;
      case 'phase-end':
        live?.stop(event.phase);
        if (!style.quiet)
          print(
            `${colors.green('✓')} ${event.phase} ${colors.dim(formatMs(event.ms))}${suffix(event.detail)}`,
          );
        return;
      case 'phase-skipped':
        if (!style.quiet) print(`${colors.yellow('–')} ${event.phase} skipped: ${event.reason}`);
        return;
      case 'progress':
        live?.progress(event);
        return;
      case 'log':
        if (!logShown(event, style)) return;
        for (const text of event.message.split(/\r?\n/)) print(logLine(event, text, colors));
        return;
    }
  };
  const cancelling = () => {
    if (!style.quiet) print('cancelling …');
  };
  return { listen, cancelling, end: () => live?.end() };
}

function logShown(event: Extract<WorkEvent, { type: 'log' }>, style: ProgressStyle): boolean {
  if (style.quiet) return false;
  return style.verbose || ['internal_error', 'error', 'warning'].includes(event.severity);
}

function logLine(event: Extract<WorkEvent, { type: 'log' }>, text: string, colors: Colors): string {
  const severity =
    event.severity === 'warning'
      ? colors.yellow('warning')
      : event.severity === 'error' || event.severity === 'internal_error'
        ? colors.red('error')
        : colors.dim(event.severity);
  return `  ${colors.dim(event.source)} ${severity} ${text}`;
}

const suffix = (detail: string | undefined): string => (detail === undefined ? '' : ` ${detail}`);

/** The one line that moves: phase, elapsed time, how far. */
function liveLine(console: Console) {
  let phases: { readonly name: string; readonly started: number; detail: string }[] = [];
  let timer: NodeJS.Timeout | undefined;
  const clear = () => console.errRaw('\r\x1b[2K');
  const draw = () => {
    const current = phases.at(-1);
    if (current === undefined) return;
    const text = `${current.name} ${formatMs(performance.now() - current.started)} ${current.detail}`;
    clear();
    console.errRaw(printable(text).slice(0, console.columns() - 1));
  };
  const stop = (name: string) => {
    phases = phases.filter((phase) => phase.name !== name);
    if (phases.length > 0) return;
    clearInterval(timer);
    timer = undefined;
    clear();
  };
  return {
    clear,
    start: (name: string, detail = '') => {
      phases.push({ name, started: performance.now(), detail });
      timer ??= setInterval(draw, TICK_MS).unref();
      draw();
    },
    stop,
    progress: (event: Extract<WorkEvent, { type: 'progress' }>) => {
      const phase = phases.find((candidate) => candidate.name === event.phase) ?? phases.at(-1);
      if (phase !== undefined) phase.detail = fraction(event);
    },
    end: () => {
      for (const { name } of phases) stop(name);
    },
  };
}

function fraction({ done, total, detail }: Extract<WorkEvent, { type: 'progress' }>): string {
  const part = total === undefined || total === 0 ? '' : `${Math.floor((100 * done) / total)} %`;
  return [part, detail ?? ''].filter((text) => text !== '').join(' ');
}
