import { type ChildWork, type SupervisedSession, startSupervised } from '../../../base/process/supervise.js';
import { TrtforgeError } from '../../../errors.js';
import type { OrtChildCall } from './ort-protocol.js';

const CHILD = new URL('../../../../dist/engines/runtime/onnxruntime/ort-child.js', import.meta.url);

/** A bundle has three models. */
const MOST_IDLE = 3;
/** Memory that an allocator keeps beyond this goes back to the system with its process. */
const IDLE_BYTES = 256 << 20;
const IDLE_MS = 5000;

export type OrtChild = Omit<SupervisedSession, 'handTo'>;

interface Idle {
  /** The process's working folder and environment. */
  readonly key: string;
  readonly child: SupervisedSession;
  readonly timer: NodeJS.Timeout;
}

const idle: Idle[] = [];

/**
 * A child process for one session. A start of Node and ONNX Runtime takes a hundred times what opening a small model does, and a study opens hundreds, one after the
 * other: a child whose session was closed in order waits a moment for the next that `isReusable`. The close of any other ends it.
 */
export function ortChild(isReusable: boolean, options: Omit<ChildWork, 'signal'>): OrtChild {
  if (!isReusable) return startSupervised(CHILD, options);
  const key = JSON.stringify([process.cwd(), Object.entries(options.env ?? process.env).sort()]);
  const child = takeIdle(key, options) ?? startSupervised(CHILD, options);
  let pending = 0;
  let isSound = true;
  let closing: Promise<void> | undefined;
  return {
    request: async (value, signal) => {
      if (closing !== undefined)
        throw new TrtforgeError(
          'TF_SESSION_CLOSED',
          `The session for ${options.doing} was used after it was closed.`,
        );
      pending++;
      try {
        return await child.request(value, signal);
      } catch (error) {
        isSound = false;
        throw error;
      } finally {
        pending--;
      }
    },
    peakBytes: () => (closing === undefined ? child.peakBytes() : null),
    close: () => {
      closing ??= isSound && pending === 0 ? release(key, child) : child.close();
      return closing;
    },
  };
}

function takeIdle(key: string, options: Omit<ChildWork, 'signal'>): SupervisedSession | undefined {
  for (;;) {
    const at = idle.findIndex((each) => each.key === key);
    const [found] = at < 0 ? [] : idle.splice(at, 1);
    if (found === undefined) return undefined;
    clearTimeout(found.timer);
    if (found.child.handTo(options)) return found.child;
    void found.child.close();
  }
}

async function release(key: string, child: SupervisedSession): Promise<void> {
  try {
    await child.request({ kind: 'close' } satisfies OrtChildCall);
  } catch {
    return child.close();
  }
  const isKept =
    idle.length < MOST_IDLE &&
    child.handTo({ emit: () => {}, doing: 'waiting for a model', graceMs: 0 }) &&
    // Its peak, which counts anew, is what it has now.
    (child.peakBytes() ?? Number.POSITIVE_INFINITY) <= IDLE_BYTES;
  if (!isKept) return child.close();
  const timer = setTimeout(() => {
    idle.splice(
      idle.findIndex((each) => each.child === child),
      1,
    );
    void child.close();
  }, IDLE_MS);
  timer.unref();
  idle.push({ key, child, timer });
}
