import { formatMs, plural } from '../../../base/text/quantity.js';
import {
  type Block,
  badge,
  code,
  command,
  facts,
  list,
  numbers,
  type Section,
  table,
} from '../../../report/blocks.js';
import { defineReport } from '../../../report/pages/report.js';
import { nameOfFile } from '../../../report/sentences.js';
import { type BisectCandidate, type BisectResult, bisectResultSchema } from './result.js';

const words = { pass: 'Found', fail: 'Fail', inconclusive: 'Inconclusive' } as const;
const tones = { pass: 'good', fail: 'bad', unresolved: 'warn' } as const;

/** The report of `trtforge bisect`. */
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
    },
    figures: [
      { text: causes[result.cause], name: 'cause' },
      { text: String(result.candidates.length), name: 'candidates' },
      ...(result.build === null ? [] : [{ text: String(result.builds), name: 'engines built' }]),
      { text: formatMs(result.totalMs), name: 'whole run' },
    ],
    sections: [workaroundSection(result), reducedSection(result), candidatesSection(result)],
    dataFile: 'bisect.json',
  }),
});

const causes = {
  none: 'none',
  conversion: 'conversion',
  tf32: 'TF32',
  fusion: 'fusion',
  nodes: 'nodes in 16 bits',
  unknown: 'unknown',
} as const satisfies Record<BisectResult['cause'], string>;

const workaroundSection = (result: BisectResult): Section | null => {
  const { cause, isMinimal, isConfirmed, workaround, convert, build } = result;
  const isOf = { fusion: 'with these outputs besides', nodes: 'with these nodes in FP32' };
  if (workaround === null) return null;
  const confirmation = isConfirmed === null ? 'not tested' : isConfirmed ? 'yes' : 'no, others too';
  const how = cause === 'fusion' || cause === 'nodes' ? isOf[cause] : null;
  return {
    id: 'workaround',
    title: 'What passes',
    lead:
      how === null
        ? result.headline
        : isMinimal
          ? `It passes ${how}, and with none of them left out.`
          : `It passes ${how}; fewer may be enough.`,
    blocks: [
      ...fusionBlocks(result),
      table(
        'Nodes',
        ['node', 'operator', ...numbers('largest value'), 'overflows'],
        result.nodes.map(({ name, op, peak, overflows }) => [
          code(name),
          op,
          String(peak ?? ''),
          overflows ? 'yes' : '',
        ]),
      ),
      facts([
        ['model that passes', code(workaround)],
        ['these nodes alone cause the failure', cause === 'nodes' ? confirmation : null],
      ]),
      convert === null ? null : command(convert),
      build === null ? null : command(build),
    ],
  };
};

const fusionBlocks = ({ fusion }: BisectResult): readonly (Block | null)[] =>
  fusion === null
    ? []
    : [
        facts([['kernel', fusion.kernel === null ? null : code(fusion.kernel)]]),
        list(fusion.nodes.map((name) => ({ label: { text: 'node', tone: 'quiet' }, text: code(name) }))),
        list(fusion.outputs.map((name) => ({ label: { text: 'output', tone: 'good' }, text: code(name) }))),
      ];

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
