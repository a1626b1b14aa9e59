import { formatMs, plural } from '../base/text/quantity.js';
import { type BisectCandidate, type BisectResult, bisectResultSchema } from '../quality/bisect/result.js';
import { defineReport } from './kind.js';
import { badge, code, command, facts, list, numbers, type Section, table } from './section.js';
import { nameOfFile } from './sentences.js';

const words = { pass: 'Found', fail: 'Fail', inconclusive: 'Inconclusive' } as const;
const tones = { pass: 'good', fail: 'bad', unresolved: 'warn' } as const;

/** What `trtforge bisect` writes. */
export const bisectReport = defineReport<BisectResult>({
  source: 'bisect',
  file: 'bisect.json',
  result: bisectResultSchema,
  page: (result) => ({
    name: nameOfFile(result.candidate),
    subtitle: `against ${result.reference}`,
    kind: 'Bisection',
    version: result.version,
    startedAt: result.startedAt,
    verdict: {
      outcome: result.outcome,
      word: words[result.outcome],
      headline: result.headline,
      reasons: result.reasons,
      remedies: [],
    },
    figures: [
      { text: String(result.nodes.length), name: 'nodes in FP32' },
      { text: String(result.candidates.length), name: 'candidates' },
      { text: formatMs(result.totalMs), name: 'whole run' },
    ],
    sections: [nodesSection(result), reducedSection(result), candidatesSection(result)],
    dataFile: 'bisect.json',
  }),
});

const nodesSection = ({
  nodes,
  isMinimal,
  isConfirmed,
  workaround,
  convert,
}: BisectResult): Section | null =>
  workaround === null
    ? null
    : {
        id: 'nodes',
        title: 'What stays FP32',
        lead: isMinimal
          ? 'The model passes with these nodes in FP32, and with none of them left out.'
          : 'The model passes with these nodes in FP32; the budget ended before fewer were tried.',
        blocks: [
          table(
            'Nodes',
            ['node', 'operator', ...numbers('largest value'), 'overflows'],
            nodes.map(({ name, op, peak, overflows }) => [
              code(name),
              op,
              String(peak ?? ''),
              overflows ? 'yes' : '',
            ]),
          ),
          facts([
            ['model that passes', code(workaround)],
            [
              'they alone fail',
              isConfirmed === null ? 'not tried' : isConfirmed ? 'yes' : 'no: others fail with them',
            ],
          ]),
          convert === null ? null : command(convert),
        ],
      };

const reducedSection = ({ reduced }: BisectResult): Section | null =>
  reduced && {
    id: 'reduced',
    title: 'A part that still fails',
    lead: `A part of ${plural(reduced.nodes, 'node')} fails by itself on its real inputs: send it with a report.`,
    blocks: [
      facts([
        ['model', code(reduced.model)],
        ['inputs', code(reduced.inputs)],
        ['what FP32 computes', code(reduced.expected)],
      ]),
      list(reduced.reasons.map((text) => ({ text }))),
      ...reduced.commands.map(command),
    ],
  };

const candidatesSection = ({ candidates, repeat, tried }: BisectResult): Section => ({
  id: 'candidates',
  title: 'What was tried',
  lead: `${plural(candidates.length, 'candidate')}, of which this run tried ${tried}.`,
  blocks: [
    table(
      'Candidates',
      [...numbers('no.'), 'what', 'outcome', ...numbers('convert', 'build', 'run'), 'the same as'],
      candidates.map(({ id, what, outcome, ms, same }) => [
        String(id),
        what,
        badge(outcome, tones[outcome]),
        ...costs(ms),
        same === null ? '' : String(same),
      ]),
    ),
    repeat === null ? null : command(repeat),
  ],
});

const costs = ({ convert, build, run }: BisectCandidate['ms']): readonly string[] =>
  [convert, build, run].map((ms) => (ms === null ? '' : formatMs(ms)));
