import type { WorkContext } from '../../../events.js';
import type { Done, Editing } from '../editing.js';
import { dropDead } from '../steps/graph.js';

/** Placeholder until the folding lands. */
export async function fold(editing: Editing, _context: WorkContext): Promise<Done> {
  return dropDead(editing);
}
