import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { thisProcess } from '../../src/engines/store/claims/claim.js';
import { createPending } from '../../src/engines/store/pending.js';

/** The folder of unpublished work that a run leaves in `parent` where it is killed. */
export function leftByKilledRun(parent: string): string {
  const { folder, planPath } = createPending(parent);
  const owner = { ...thisProcess(), pid: 2 ** 22 + 1 };
  writeFileSync(join(folder, 'owner.json'), JSON.stringify({ token: randomUUID(), kind: 'pending', owner }));
  writeFileSync(planPath, 'half a plan');
  return folder;
}
