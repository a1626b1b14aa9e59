import { type BenchCase, peersOr, trtforge } from '../context.js';
import { measureCommand } from '../measure.js';
import { costs, type Measurement } from '../result.js';

/** Short commands are cheap, so more runs steady their median. */
const RUNS = 15;

/** What the command line costs before it does anything. */
export const start: BenchCase = {
  name: 'start',
  run: (context) => {
    const skipped: string[] = [];
    const more = { runs: Math.max(RUNS, context.runs) };
    const ours = measureCommand(trtforge(context, '--version'), more);
    const node = { name: 'node -e 0', runs: measureCommand([process.execPath, '-e', '0'], more) };
    const measurements: Measurement[] = costs('--version beside bare Node', ours, node, { seconds: 0.12 });
    const peers = peersOr(context, skipped);
    if (peers !== undefined) {
      const runs = measureCommand([peers.polygraphy, '--version'], more);
      measurements.push(
        ...costs('--version', ours, { name: 'polygraphy --version', runs }, { seconds: 0.12 }),
      );
    }
    return {
      case: 'start',
      title: 'Start of the command line',
      commands: ['trtforge --version', 'node -e 0', 'polygraphy --version'],
      measurements,
      skipped,
    };
  },
};
