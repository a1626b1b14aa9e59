import { sleep } from '../../base/process/cancel.js';
import { type EventListener, inPhase } from '../../events.js';
import type { Lease } from './claims/lease.js';
import type { LocalStore } from './local.js';
import type { StoredEngine } from './store.js';

/** The right to build, or what another process built while this one waited for it. */
type Turn = { readonly lease: Lease } | { readonly engine: StoredEngine };

interface TurnOptions {
  /** Only the lease counts: the engine is to be built again in any case. */
  readonly forceRebuild: boolean;
  readonly emit: EventListener;
  readonly signal: AbortSignal | undefined;
}

/** How often a waiting process looks whether the engine is there or the builder gone; grows from the first to the second. */
const POLL_MS = [50, 500] as const;

/** Becomes the one builder of an identity, or gets the engine that another process finished meanwhile. Throws TF_WRITE_FAILED, TF_CANCELLED. */
export async function waitForTurn(store: LocalStore, identity: string, options: TurnOptions): Promise<Turn> {
  const { emit, signal } = options;
  const first = await takeTurn(store, identity, options);
  if ('turn' in first) return first.turn;
  const wait = async () => {
    let holder = first.holder;
    for (let pause: number = POLL_MS[0]; ; pause = Math.min(pause * 1.5, POLL_MS[1])) {
      await sleep(pause, signal, `waiting for ${holder}, which builds the same engine`);
      const next = await takeTurn(store, identity, options);
      if ('turn' in next) return next.turn;
      holder = next.holder;
    }
  };
  return inPhase('wait', emit, wait, `${first.holder} builds the same engine`);
}

async function takeTurn(
  store: LocalStore,
  identity: string,
  { forceRebuild }: TurnOptions,
): Promise<{ readonly turn: Turn } | { readonly holder: string }> {
  const attempt = store.leases.tryAcquire(identity);
  try {
    // Also with the lease in hand: the one who had it before may have finished between our look and our turn.
    const answer = forceRebuild ? undefined : await store.get(identity);
    if (answer?.found) {
      attempt.lease?.release();
      return { turn: { engine: answer.engine } };
    }
  } catch (error) {
    attempt.lease?.release();
    throw error;
  }
  return attempt.lease === null ? { holder: attempt.holder } : { turn: { lease: attempt.lease } };
}
