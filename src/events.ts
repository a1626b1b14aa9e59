/** The events of long work while it runs. They are plain data, so they cross processes and become `--events` JSON lines as they are. */
export type WorkEvent =
  | { readonly type: 'phase-start'; readonly phase: string; readonly detail?: string }
  | { readonly type: 'phase-end'; readonly phase: string; readonly ms: number; readonly detail?: string }
  /** An error ended it; the work around it may go on. */
  | { readonly type: 'phase-failed'; readonly phase: string; readonly ms: number }
  /** It was left out, or ends without having done what it is for. */
  | { readonly type: 'phase-skipped'; readonly phase: string; readonly reason: string }
  /** `done` of `total` steps or bytes (the phase says which); `total` undefined while unknown. */
  | {
      readonly type: 'progress';
      readonly phase: string;
      readonly done: number;
      readonly total?: number;
      readonly detail?: string;
    }
  | {
      readonly type: 'log';
      readonly source: string;
      readonly severity: LogSeverity;
      readonly message: string;
    };

/** TensorRT's own five levels, by name. */
export type LogSeverity = 'internal_error' | 'error' | 'warning' | 'info' | 'verbose';

/** By TensorRT's numbers, 0 to 4. */
export const logSeverities: readonly LogSeverity[] = [
  'internal_error',
  'error',
  'warning',
  'info',
  'verbose',
];

export type EventListener = (event: WorkEvent) => void;

/** Who hears of long work while it runs, what stops it, and the environment that it reads (default: that of the process). */
export interface WorkContext {
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
  readonly environment?: NodeJS.ProcessEnv;
}

/** The one context of work, complete: passed on whole. */
export type Work = Required<WorkContext>;

export const ignoreEvents: EventListener = () => {};

export const workOf = ({
  emit = ignoreEvents,
  signal = new AbortController().signal,
  environment = process.env,
}: WorkContext = {}): Work => ({ emit, signal, environment });

/** Runs `work` as a named phase: its start, and with the time its end or failure, become events; `found` is the detail of the end, `skipped` why it was none. */
export async function inPhase<T>(
  phase: string,
  emit: EventListener,
  work: () => Promise<T>,
  detail?: string,
  found?: (result: T) => string,
  skipped: (result: T) => string | undefined = () => undefined,
): Promise<T> {
  emit({ type: 'phase-start', phase, ...(detail === undefined ? {} : { detail }) });
  const started = performance.now();
  const ms = () => performance.now() - started;
  let result: T;
  try {
    result = await work();
  } catch (error) {
    emit({ type: 'phase-failed', phase, ms: ms() });
    throw error;
  }
  const reason = skipped(result);
  if (reason !== undefined) emit({ type: 'phase-skipped', phase, reason });
  else
    emit({ type: 'phase-end', phase, ms: ms(), ...(found === undefined ? {} : { detail: found(result) }) });
  return result;
}
