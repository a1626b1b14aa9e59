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
  const tree = new PhaseTree();
  const isLive = console.isTerminal.err && !style.quiet;
  const live = isLive ? liveLine(console, tree) : undefined;
  const colors = colorsFor(console, console.isTerminal.err);
  const print = (text: string) => {
    live?.clear();
    console.err(printable(text));
  };
  const slow = new Map<OpenPhase, NodeJS.Timeout>();
  const start = (name: string, detail: string | undefined) => {
    const phase = tree.start(name, detail);
    if (isLive || style.quiet) return;
    const report = () => print(`${'  '.repeat(phase.depth)}${name} …${suffix(detail)}`);
    slow.set(phase, setTimeout(report, SLOW_MS).unref());
  };
  /** A line for something that is over. A terminal has the parts of a phase below it, which is known when it ends; elsewhere each line comes at once. */
  const over = (
    parent: OpenPhase | undefined,
    depth: number,
    text: string,
    parts: readonly string[] = [],
  ) => {
    if (style.quiet) return;
    const lines = isLive ? tree.place(parent, [text, ...parts]) : [`${'  '.repeat(depth)}${text}`];
    for (const line of lines) print(line);
  };
  const end = (name: string, text: (phase: OpenPhase) => string) => {
    const phase = tree.end(name);
    if (phase === undefined) return false;
    clearTimeout(slow.get(phase));
    slow.delete(phase);
    over(phase.parent, phase.depth, text(phase), phase.lines);
    if (tree.isEmpty) live?.stop();
    return true;
  };
  const failed = ({ name }: OpenPhase) => `${colors.red('✗')} ${name}`;
  const warned = new SimilarLines();
  /** A warning like one before it; the result states how many there are. */
  const isRepeated = ({ severity, message }: Extract<WorkEvent, { type: 'log' }>) =>
    severity === 'warning' && !style.verbose && !warned.add(message);
  const listen: EventListener = (event) => {
    switch (event.type) {
      case 'phase-start':
        start(event.phase, event.detail);
        live?.start();
        return;
      case 'phase-end':
        end(event.phase, ({ detail }) => {
          const more = event.detail ?? detail;
          return `${colors.green('✓')} ${event.phase} ${colors.dim(formatMs(event.ms))}${more === '' ? '' : ` ${colors.dim(more)}`}`;
        });
        return;
      case 'phase-failed':
        // Phases of a child process or a library have no end of their own when an error stops them.
        for (const { name } of tree.within(event.phase)) end(name, failed);
        end(event.phase, failed);
        return;
      case 'phase-skipped': {
        const text = `${colors.yellow('–')} ${event.phase} skipped: ${event.reason}`;
        if (end(event.phase, () => text)) return;
        const parent = tree.innermost(event.phase);
        over(parent, parent === undefined ? 0 : parent.depth + 1, text);
        return;
      }
      case 'progress': {
        const phase = tree.named(event.phase);
        if (phase !== undefined) phase.progress = fraction(event);
        return;
      }
      case 'log':
        if (!logShown(event, style) || isRepeated(event)) return;
        for (const text of event.message.split(/\r?\n/)) print(logLine(event, text, colors));
        return;
    }
  };
  return {
    listen,
    cancelling: () => {
      if (!style.quiet) print('cancelling …');
    },
    // Phases that run still are those that an error ended.
    end: () => {
      for (let phase = tree.innermost(); phase !== undefined; phase = tree.innermost())
        end(phase.name, failed);
    },
  };
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
