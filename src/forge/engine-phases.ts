import { whyNotRunHere } from './environment.js';
import type { Forged, Run } from './forged.js';
import type { NamedSkip } from './phase.js';

/**
 * The steps that run the engine itself, by name, so that a report never leaves them out in silence. They need a GPU that the engine serves;
 * where one is there, this version of trtforge still has no session that runs engines, and says so.
 */
export const enginePhases = ({ machine }: Run): readonly NamedSkip<Forged>[] =>
  ['verify engine', 'bench'].map((name) => ({
    name,
    skip: ({ prepared, obtained }) =>
      prepared === undefined || obtained === undefined
        ? 'there is no engine'
        : (whyNotRunHere(machine, prepared.identity.target.computeCapabilities) ??
          'this version of trtforge does not run engines yet'),
  }));
