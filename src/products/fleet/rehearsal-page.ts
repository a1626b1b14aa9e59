import { formatBytes, formatMs, plural } from '../../base/text/quantity.js';
import {
  badge,
  code,
  command,
  labelled,
  lines,
  type Section,
  type Text,
  table,
} from '../../report/blocks.js';
import { defineReport } from '../../report/pages/report.js';
import { outcomeTone } from '../../report/sentences.js';
import { type Rehearsal, rehearsalSchema } from './rehearsal-result.js';

export const goWords = { pass: 'go', fail: 'NO-GO', inconclusive: 'undecided' } as const;

/** Go or no-go. */
export const rehearsalReport = defineReport<Rehearsal>({
  source: 'fleet rehearse',
  file: 'rehearsal.json',
  result: rehearsalSchema,
  page: (rehearsal) => ({
    name: `${rehearsal.from} to ${rehearsal.to}`,
    subtitle: rehearsal.gpu ?? 'no GPU',
    kind: 'rehearsal',
    version: rehearsal.version,
    startedAt: rehearsal.at,
    verdict: {
      outcome: rehearsal.outcome,
      word: goWords[rehearsal.outcome],
      headline: `${plural(rehearsal.engines.length, 'engine')} rehearsed.`,
      reasons: rehearsal.reasons,
    },
    sections: [engines(rehearsal), policy(rehearsal), notDone(rehearsal)],
  }),
});

const judged = (outcome: 'pass' | 'fail' | 'inconclusive' | null): Text =>
  outcome === null ? '' : badge(outcome, outcomeTone[outcome]);

const percent = (ratio: number): string => `${ratio >= 1 ? '+' : ''}${((ratio - 1) * 100).toFixed(1)} %`;

const engines = ({ engines: all }: Rehearsal): Section => ({
  id: 'engines',
  title: 'Engines',
  lead: 'Each was built by the new TensorRT, compared with its FP32 model and with what the old engine gave, and measured beside it.',
  blocks: [
    table(
      'Every engine',
      ['engine', 'against the model', "the old engine's answer", 'GPU time', 'size', 'build'],
      all.map(({ model, on, before, after, verify, answer, ratio }) => [
        lines([code(model), on]),
        judged(verify),
        judged(answer),
        ratio === null ? '' : `${percent(ratio.ratio)} (${percent(ratio.low)} to ${percent(ratio.high)})`,
        lines([before, after].map((side) => (side === null ? '' : formatBytes(side.bytes)))),
        lines([before, after].map((side) => (side === null ? '' : formatMs(side.buildMs)))),
      ]),
    ),
  ],
});

const policy = ({ gate, repeat }: Rehearsal): Section => ({
  id: 'policy',
  title: 'Policy',
  lead: `${plural(gate.findings.length, 'finding')}, ${gate.counts.waived} waived.`,
  blocks: [
    table(
      'Findings',
      ['result', 'check', 'outcome', 'finding', 'waived until'],
      gate.findings.map(({ result, check, outcome, message, waiver }) => [
        code(result ?? ''),
        check ?? 'result',
        outcome,
        message,
        waiver === null ? '' : `${waiver.expires}: ${waiver.reason}`,
      ]),
    ),
    command(repeat),
  ],
});

const notDone = ({ engines: all }: Rehearsal): Section | null => {
  const left = all.flatMap(({ name, notDone: why }) => why.map((each) => `${name}: ${each}`));
  return left.length === 0
    ? null
    : { id: 'not-done', title: 'Not done', lead: '', blocks: [labelled('not done', 'warn', left)] };
};
