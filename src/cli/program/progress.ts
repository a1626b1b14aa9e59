import { formatMs } from '../../base/text/quantity.js';
import { SimilarLines } from '../../base/text/similar-lines.js';
import type { EventListener, WorkEvent } from '../../events.js';
import type { Colors } from '../command.js';
import { type Console, colorsFor, printable, toJson } from '../output.js';

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

/** Interval between updates of the live line. */
const TICK_MS = 100;

/** Without a terminal a phase that takes longer is a line when it has taken so long, so that a log shows what is at work. */
const SLOW_MS = 10_000;

/** Shows events on stderr: a live line and a tree of phases on a terminal, a line for each phase elsewhere, JSON lines with `--events`, nothing with `--quiet`. */
export const createProgress = (console: Console, style: ProgressStyle): Progress =>
  style.events ? jsonProgress(console) : new TextProgress(console, style);

function jsonProgress(console: Console): Progress {
  const listen: EventListener = (event) =>
    console.err(toJson({ time: new Date().toISOString(), ...event }, 0));
  return {
    listen,
    cancelling: () => listen({ type: 'log', source: 'trtforge', severity: 'info', message: 'cancelling' }),
    end: () => {},
  };
}

class TextProgress implements Progress {
  readonly #console: Console;
  readonly #style: ProgressStyle;
  readonly #colors: Colors;
  readonly #tree = new PhaseTree();
  readonly #live: ReturnType<typeof liveLine> | undefined;
  /** What reports a phase that takes long. */
  readonly #slow = new Map<OpenPhase, NodeJS.Timeout>();
  readonly #warned = new SimilarLines();

  constructor(console: Console, style: ProgressStyle) {
    this.#console = console;
    this.#style = style;
    this.#live = console.isTerminal.err && !style.quiet ? liveLine(console, this.#tree) : undefined;
    this.#colors = colorsFor(console, console.isTerminal.err);
  }

  readonly listen: EventListener = (event) => {
    switch (event.type) {
      case 'phase-start':
        this.#start(event.phase, event.detail);
        this.#live?.start();
        return;
      case 'phase-end':
        this.#end(event.phase, (phase) => endedLine(event, phase, this.#colors));
        return;
      case 'phase-failed':
        // Phases of a child process or a library have no end of their own when an error stops them.
        for (const { name } of this.#tree.within(event.phase)) this.#fail(name);
        this.#fail(event.phase);
        return;
      case 'phase-skipped':
        this.#skip(event.phase, event.reason);
        return;
      case 'progress': {
        const phase = this.#tree.named(event.phase);
        if (phase !== undefined) phase.progress = fraction(event);
        return;
      }
      case 'log':
        if (!logShown(event, this.#style) || this.#isRepeated(event)) return;
        for (const text of event.message.split(/\r?\n/)) this.#print(logLine(event, text, this.#colors));
        return;
    }
  };

  cancelling(): void {
    if (!this.#style.quiet) this.#print('cancelling …');
  }

  /** Phases that run still are those that an error ended. */
  end(): void {
    for (let phase = this.#tree.innermost(); phase !== undefined; phase = this.#tree.innermost())
      this.#fail(phase.name);
  }

  #start(name: string, detail: string | undefined): void {
    const phase = this.#tree.start(name, detail);
    if (this.#live !== undefined || this.#style.quiet) return;
    const report = () => this.#print(`${'  '.repeat(phase.depth)}${name} …${suffix(detail)}`);
    this.#slow.set(phase, setTimeout(report, SLOW_MS).unref());
  }

  /** Ends the phase of a name with a line; false where none runs. */
  #end(name: string, text: (phase: OpenPhase) => string): boolean {
    const phase = this.#tree.end(name);
    if (phase === undefined) return false;
    clearTimeout(this.#slow.get(phase));
    this.#slow.delete(phase);
    this.#over(phase.parent, phase.depth, text(phase), phase.lines);
    if (this.#tree.isEmpty) this.#live?.stop();
    return true;
  }

  #fail(phase: string): void {
    this.#end(phase, ({ name }) => `${this.#colors.red('✗')} ${name}`);
  }

  #skip(name: string, reason: string): void {
    const text = `${this.#colors.yellow('–')} ${name} skipped: ${reason}`;
    if (this.#end(name, () => text)) return;
    const parent = this.#tree.innermost(name);
    this.#over(parent, parent === undefined ? 0 : parent.depth + 1, text);
  }

  /** A line for something that is over. A terminal has the parts of a phase below it, which is known when it ends; elsewhere each line comes at once. */
  #over(parent: OpenPhase | undefined, depth: number, text: string, parts: readonly string[] = []): void {
    if (this.#style.quiet) return;
    const isLive = this.#live !== undefined;
    const lines = isLive ? this.#tree.place(parent, [text, ...parts]) : [`${'  '.repeat(depth)}${text}`];
    for (const line of lines) this.#print(line);
  }

  #print(text: string): void {
    this.#live?.clear();
    this.#console.err(printable(text));
  }

  /** Whether a warning is like one before it; the result states how many there are. */
  #isRepeated({ severity, message }: LogEvent): boolean {
    return severity === 'warning' && !this.#style.verbose && !this.#warned.add(message);
  }
}

function endedLine(
  { phase, ms, detail }: Extract<WorkEvent, { type: 'phase-end' }>,
  { detail: begun }: OpenPhase,
  colors: Colors,
): string {
  const more = detail ?? begun;
  const took = `${colors.green('✓')} ${phase} ${colors.dim(formatMs(ms))}`;
  return more === '' ? took : `${took} ${colors.dim(more)}`;
}

type LogEvent = Extract<WorkEvent, { type: 'log' }>;

function logShown(event: LogEvent, style: ProgressStyle): boolean {
  if (style.quiet) return false;
  return style.verbose || ['internal_error', 'error', 'warning'].includes(event.severity);
}

function logLine(event: LogEvent, text: string, colors: Colors): string {
  return `  ${colors.dim(event.source)} ${severityText(event.severity, colors)} ${text}`;
}

function severityText(severity: LogEvent['severity'], colors: Colors): string {
  if (severity === 'warning') return colors.yellow('warning');
  return severity === 'error' || severity === 'internal_error' ? colors.red('error') : colors.dim(severity);
}

const suffix = (detail: string | undefined): string => (detail === undefined ? '' : ` ${detail}`);

/** The one line that moves: the phases that run, one in the other, elapsed time, how far. */
function liveLine(console: Console, tree: PhaseTree) {
  let timer: NodeJS.Timeout | undefined;
  const clear = () => console.errRaw('\r\x1b[2K');
  const draw = () => {
    const current = tree.innermost();
    if (current === undefined) return;
    const text = `${pathOf(current)} ${formatMs(performance.now() - current.started)} ${current.progress || current.detail}`;
    clear();
    console.errRaw(printable(text).slice(0, console.columns() - 1));
  };
  return {
    clear,
    start: () => {
      timer ??= setInterval(draw, TICK_MS).unref();
      draw();
    },
    stop: () => {
      clearInterval(timer);
      timer = undefined;
      clear();
    },
  };
}

const pathOf = ({ name, parent }: OpenPhase): string =>
  parent === undefined ? name : `${pathOf(parent)} › ${name}`;

function fraction({ done, total, detail }: Extract<WorkEvent, { type: 'progress' }>): string {
  const part = total === undefined || total === 0 ? '' : `${Math.floor((100 * done) / total)} %`;
  return [part, detail ?? ''].filter((text) => text !== '').join(' ');
}

/** A phase that has begun and not ended. */
export interface OpenPhase {
  readonly name: string;
  readonly detail: string;
  readonly parent: OpenPhase | undefined;
  readonly depth: number;
  /** The progress of the phase, where known. */
  progress: string;
  /** `performance.now()` of its beginning. */
  readonly started: number;
  /** Lines of the phases in it that have ended, indented below it. */
  readonly lines: string[];
}

/**
 * Which phase runs in which: one that begins while another runs is part of it. Phases of several components run side by side, and their names begin with the
 * component (`encoder: build`): those are parts of phases of the same component.
 */
class PhaseTree {
  #open: OpenPhase[] = [];

  start(name: string, detail = ''): OpenPhase {
    const parent = this.innermost(name);
    const depth = parent === undefined ? 0 : parent.depth + 1;
    const phase = { name, detail, parent, depth, progress: '', started: performance.now(), lines: [] };
    this.#open.push(phase);
    return phase;
  }

  /** The last to begin of those that run, and that one of a name is or would be part of. */
  innermost(name?: string): OpenPhase | undefined {
    const fits = ({ name: open }: OpenPhase) =>
      name === undefined || [componentOf(name), ''].includes(componentOf(open));
    return this.#open.findLast(fits);
  }

  /** The phase that an event of a name is about. */
  named(name: string): OpenPhase | undefined {
    return this.#open.findLast((open) => open.name === name) ?? this.innermost(name);
  }

  /** The phase of a name, which runs no more. */
  end(name: string): OpenPhase | undefined {
    const phase = this.#open.findLast((open) => open.name === name);
    this.#open = this.#open.filter((open) => open !== phase);
    return phase;
  }

  /** The phases that run within the last of a name, innermost first. */
  within(name: string): readonly OpenPhase[] {
    const outer = this.#open.findLast((open) => open.name === name);
    const isInside = ({ parent }: OpenPhase): boolean =>
      parent !== undefined && (parent === outer || isInside(parent));
    return this.#open.filter(isInside).toReversed();
  }

  /** Puts lines below the phase that they are part of; gives back those of no phase that runs. */
  place(parent: OpenPhase | undefined, lines: readonly string[]): readonly string[] {
    const open = parent !== undefined && this.#open.includes(parent);
    if (!open) return parent === undefined ? lines : this.place(parent.parent, lines);
    parent.lines.push(...lines.map((line) => `  ${line}`));
    return [];
  }

  get isEmpty(): boolean {
    return this.#open.length === 0;
  }
}

/** `encoder` of `encoder: build`; empty for a phase of no component. */
const componentOf = (name: string): string => /^([^:]+): /.exec(name)?.[1] ?? '';
