import { readJson } from '../../base/files/files.js';
import type { CommandContext } from '../../cli/command.js';
import { type FleetPlan, fleetPlanSchema } from './plan-schema.js';

export interface Fleet {
  readonly plan: FleetPlan;
  readonly address: string;
}

export async function withFleet<T>(
  given: string,
  _context: CommandContext,
  _how: { readonly keep?: boolean; readonly asPlanned?: boolean },
  work: (fleet: Fleet) => Promise<T>,
): Promise<T> {
  return work({ plan: fleetPlanSchema.parse(readJson(given)), address: given });
}
