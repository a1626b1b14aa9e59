import type { EventListener } from '../../events.js';

/** What long work takes besides its request. */
export interface WorkContext {
  readonly emit: EventListener;
  readonly signal?: AbortSignal | undefined;
  readonly environment: NodeJS.ProcessEnv;
}

/** Events with the component's name before every phase, so that components built side by side can be told apart. */
export const forComponent =
  (emit: EventListener, component: string): EventListener =>
  (event) =>
    emit('phase' in event ? { ...event, phase: `${component}: ${event.phase}` } : event);

/** What functions take that know an absent signal only as a missing field. */
export const signalOf = ({ signal }: Pick<WorkContext, 'signal'>): { readonly signal?: AbortSignal } =>
  signal === undefined ? {} : { signal };
