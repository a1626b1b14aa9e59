import {
  type BenchCase,
  generate,
  NO_OTHER_CLONE,
  OTHER_CLONE,
  ofOtherClone,
  peersOr,
  trtforge,
} from '../context.js';
import { measureCommands } from '../measure.js';
import { costs } from '../result.js';

/** Short commands are cheap, so more runs steady their median. */
const RUNS = 15;

/** Processor time of `verify` of a tiny model, s. */
const VERIFY_SECONDS = 0.6;

/** What the command line costs before it does anything, and what a small verdict costs in all. */
export const start: BenchCase = {
  name: 'start',
  run: (context) => {
    const skipped: string[] = [];
    const peers = peersOr(context, skipped);
    const otherClone = ofOtherClone('--version');
    if (otherClone === undefined) skipped.push(NO_OTHER_CLONE);
    const others = [
      { name: 'node -e 0', argv: [process.execPath, '-e', '0'] },
      ...(peers ? [{ name: 'polygraphy --version', argv: [peers.polygraphy, '--version'] }] : []),
      ...(otherClone ? [{ name: OTHER_CLONE, argv: otherClone }] : []),
    ];
    const runs = Math.max(RUNS, context.runs);
    const commands = [trtforge(context, '--version'), ...others.map(({ argv }) => argv)];
    const [ours, ...theirs] = measureCommands(commands, { runs });
    const versions = others
      .flatMap(({ name }, index) =>
        costs(`--version beside ${name}`, ours!, { name, runs: theirs[index]! }, { seconds: 0.12 }),
      )
      .filter(({ unit }) => unit === 's');
    const model = generate(context, 'resnet50', 'tiny');
    const words = ['verify', model, '--against', model, '--quiet'];
    const verdicts = [trtforge(context, ...words), ofOtherClone(...words)].filter(
      (side) => side !== undefined,
    );
    const [own, other] = measureCommands(verdicts, { runs: context.runs }).map(
      ({ median }) => median.cpuSeconds,
    );
    if (own == null) skipped.push('processor time of verify: it is not measured here');
    return {
      case: 'start',
      title: 'Start of the command line',
      commands: [
        'trtforge --version',
        'trtforge verify MODEL --against MODEL',
        ...['node -e 0', 'polygraphy --version'],
        'the same of the clone that BENCH_BASE names',
      ],
      measurements: [
        ...versions,
        ...(own == null
          ? []
          : [
              {
                what: 'verify of a tiny model, processor time',
                unit: 's' as const,
                ours: own,
                ...(other == null ? {} : { peer: { name: OTHER_CLONE, figure: other } }),
                bar: { limit: VERIFY_SECONDS, better: 'lower' as const },
              },
            ]),
      ],
      skipped,
    };
  },
};
