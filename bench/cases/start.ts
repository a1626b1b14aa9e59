import { type BenchCase, peersOr, trtforge } from '../context.js';
import { measureCommands } from '../measure.js';
import { costs } from '../result.js';

/** Short commands are cheap, so more runs steady their median. */
const RUNS = 15;

/** What the command line costs before it does anything. */
export const start: BenchCase = {
  name: 'start',
  run: (context) => {
    const skipped: string[] = [];
    const peers = peersOr(context, skipped);
    const others = [
      { name: 'node -e 0', argv: [process.execPath, '-e', '0'] },
      ...(peers ? [{ name: 'polygraphy --version', argv: [peers.polygraphy, '--version'] }] : []),
    ];
    const commands = [trtforge(context, '--version'), ...others.map(({ argv }) => argv)];
    const [ours, ...theirs] = measureCommands(commands, { runs: Math.max(RUNS, context.runs) });
    const measurements = others.flatMap(({ name }, index) =>
      costs(`--version beside ${name}`, ours!, { name, runs: theirs[index]! }, { seconds: 0.12 }),
    );
    return {
      case: 'start',
      title: 'Start of the command line',
      commands: ['trtforge --version', 'node -e 0', 'polygraphy --version'],
      measurements: measurements.filter(({ unit }) => unit === 's'),
      skipped,
    };
  },
};
