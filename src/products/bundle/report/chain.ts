import { formatCount, formatMs, formatShare, formatStatistic } from '../../../base/text/quantity.js';
import {
  badge,
  charts,
  facts,
  labelled,
  note,
  numbers,
  type Section,
  table,
} from '../../../report/blocks.js';
import { barChart } from '../../../report/chart/bars.js';
import { outcomeTone } from '../../../report/sentences.js';
import type { ChainCheck } from '../chain-schema.js';
import { agreementShare, checkSentence, driftText } from './sentences.js';

/** One decoding of the bundle against its models: what agrees, where not by how little, and which component moves the logits. */
export function chainSection(check: ChainCheck, index: number): Section {
  const limit = formatShare(check.drift_limit);
  return {
    id: `chain-${index + 1}`,
    title: `Chained check: ${check.candidate}`,
    lead: checkSentence(check),
    blocks: [
      labelled(check.outcome, check.outcome === 'fail' ? 'bad' : 'warn', check.reasons),
      agreementTable(check),
      ...check.unequal_sequences.map(({ sample, index }) =>
        note(`Sample ${sample}, decoded freely, differs from decision ${index} on.`),
      ),
      charts({
        chart: driftChart(check),
        caption: `How far the logits move, by root mean square over that of the reference, when one component alone is exchanged. Together they may move them by ${limit}.`,
      }),
      exchangeTable(check),
      differenceTable(check),
      facts([
        ['verdict', badge(check.outcome, outcomeTone[check.outcome])],
        ['reference', check.reference_backend],
        ['candidate', check.candidate_backend],
        ['samples', `${check.samples} of ${formatCount(check.frames)} frames, seed ${check.seed}`],
        ['emitted tokens', formatCount(check.emitted_tokens)],
        ['smallest margin', formatStatistic(check.smallest_margin)],
        ['took', formatMs(check.ms)],
      ]),
    ],
  };
}

/** How many tokens, durations and whole sequences are the same, and their shares. */
function agreementTable(check: ChainCheck) {
  const { samples, equal_sequences: equal } = check;
  const agreement = (what: string, agreeing: number) => [
    what,
    formatCount(agreeing),
    formatCount(check.decisions),
    formatShare(agreementShare(agreeing, check)),
  ];
  return table(
    'Decisions that are the same, led along those of the reference; sequences, decoded freely',
    ['what', ...numbers('same', 'of', 'share')],
    [
      agreement('tokens', check.token_agreement),
      agreement('durations', check.duration_agreement),
      ['whole sequences', String(equal), String(samples), formatShare(equal / samples)],
    ],
  );
}

/** What each component alone changes, one a row. */
function exchangeTable({ components }: ChainCheck) {
  return table(
    'One component exchanged at a time',
    [
      'exchanged alone',
      ...numbers('relative error', 'largest difference', 'tokens change', 'durations change'),
    ],
    components.map((one) => [
      one.component,
      driftText(one.relative_rms),
      driftText(one.max_abs),
      formatCount(one.token_changes),
      formatCount(one.duration_changes),
    ]),
  );
}

/** Each decision that differs, with the margins by which both sides chose. */
function differenceTable({ differences }: ChainCheck) {
  return table(
    'Decisions that differ, with the margin of each choice over that of the other; up to twice the movement of the row it is a low-margin decision',
    [
      'sample',
      ...numbers('step'),
      'what',
      ...numbers('reference', 'candidate', 'reference margin', 'candidate margin', 'movement'),
      'weight',
    ],
    differences.map((one) => [
      String(one.sample),
      String(one.step),
      one.what,
      String(one.reference),
      String(one.candidate),
      formatStatistic(one.reference_margin),
      formatStatistic(one.candidate_margin),
      formatStatistic(one.movement),
      one.low_margin ? badge('low margin', 'warn') : badge('wrong', 'bad'),
    ]),
  );
}

/** Full width is the limit, or the longest bar beyond it. A bar that has no number is as long; one that is not finite, or beyond what the check lets the logits move as a whole, is bad. */
function driftChart({ candidate, components, drift_limit: limit }: ChainCheck) {
  const longest = Math.max(limit, ...components.map(({ relative_rms }) => relative_rms ?? 0));
  return barChart(
    `Relative error by component: ${candidate}`,
    components.map(({ component, relative_rms: error, token_changes, duration_changes }) => ({
      label: component,
      text:
        error === null ? driftText(null) : `${driftText(error)} · ${formatShare(error / limit)} of the limit`,
      amount: error ?? longest,
      tone: error === null || error > limit ? 'bad' : 'accent',
      name: `${token_changes} tokens and ${duration_changes} durations change`,
    })),
    { limit },
  );
}
