import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import type { ChildMessage } from './supervise.js';

export interface ChildContext {
  readonly emit: EventListener;
  /** Aborted when the parent asks to stop (SIGTERM) or is gone. */
  readonly signal: AbortSignal;
}

/** The other side of `startSupervised`: answers requests until the parent disconnects or asks to stop, then ends the process. */
export function serveSession(handle: (request: unknown, emit: EventListener) => Promise<unknown>): void {
  process.on('SIGTERM', () => process.exit(1));
  // Ctrl-C reaches the whole group; the parent decides, and an end of our own would look like a crash to it.
  process.on('SIGINT', () => {});
  process.on('disconnect', () => process.exit(0));
  const send = (message: ChildMessage) => {
    if (process.connected) process.send?.(message);
  };
  let last = Promise.resolve();
  process.on('message', (message: { readonly request: unknown } | { readonly end: true }) => {
    if ('end' in message) process.exit(0);
    last = last
      .then(() => handle(message.request, (event) => send({ kind: 'event', event })))
      .then((value): ChildMessage => ({ kind: 'result', value }), toErrorMessage)
      .then(send);
  });
}

/** The other side of `runSupervised`: answers one request, then ends the process, `end` being how. */
export function serve(
  work: (request: unknown, context: ChildContext) => Promise<unknown>,
  end: () => void = () => process.exit(0),
): void {
  const stopping = new AbortController();
  process.on('SIGTERM', () => stopping.abort());
  process.on('SIGINT', () => stopping.abort());
  // The parent is gone. A library in the middle of a build would hold up an orderly exit for as long as the build takes.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  const send = (message: ChildMessage, then: () => void = () => {}) => {
    if (process.connected) process.send?.(message, then);
  };
  process.once('message', (message: { readonly request: unknown }) => {
    work(message.request, { emit: (event) => send({ kind: 'event', event }), signal: stopping.signal })
      .then((value): ChildMessage => ({ kind: 'result', value }), toErrorMessage)
      .then((answer) => send(answer, end));
  });
}

/** An error as another process or thread gets it. */
export function toErrorMessage(error: unknown): ChildMessage {
  const known =
    error instanceof TrtforgeError
      ? error
      : new TrtforgeError(
          'TF_INTERNAL',
          error instanceof Error ? (error.stack ?? error.message) : String(error),
        );
  const { code, message, remedy, details } = known;
  return { kind: 'error', code, message, remedy, details };
}
