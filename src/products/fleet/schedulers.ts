import type { CommandContext } from '../../cli/command.js';
import type { FleetPlan, FleetStatus } from './plan-schema.js';

/** What schedulers say of a plan's jobs, by their index. */
export interface Scheduled {
  readonly jobs: ReadonlyMap<
    number,
    { readonly state: 'queued' | 'running'; readonly node: string | null; readonly reason: string }
  >;
  readonly asked: FleetStatus['schedulers'];
}

export const scheduledJobs = async (_plan: FleetPlan, _context: CommandContext): Promise<Scheduled> => ({
  jobs: new Map(),
  asked: [],
});
