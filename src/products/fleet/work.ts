import type { CommandContext } from '../../cli/command.js';
import { ExitCode } from '../../errors.js';
import type { Fleet } from './open-plan.js';
import type { FleetJob, FleetWork } from './plan-schema.js';

export async function workOn(
  { plan }: Fleet,
  jobs: readonly FleetJob[],
  { emit }: CommandContext,
): Promise<FleetWork> {
  for (const { name } of jobs) emit({ type: 'log', source: 'trtforge', severity: 'info', message: name });
  return { schema: 'trtforge.fleet-work/1', plan: plan.id, jobs: [], exitCode: 0 };
}

export const worst = (codes: readonly ExitCode[]): ExitCode =>
  codes.find((code) => code !== 0) ?? ExitCode.pass;
