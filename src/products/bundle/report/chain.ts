import { formatCount, formatMs, formatShare, formatStatistic } from '../../../base/text/quantity.js';
import { barChart } from '../../../report/chart/bars.js';
import { markup } from '../../../report/markup.js';
import { badge, facts, figure, type SectionFacts, table } from '../../../report/parts.js';
import type { ChainCheck, ComponentDrift } from '../chain-schema.js';
import type { BundleReport } from '../report-schema.js';
import { agreementShare, checkSentence, differenceCells, driftText, movesTooMuch } from './sentences.js';

/** Each decoding of the bundle against its models: what agrees, where not by how little, and which component moves the logits. */
export const chainSections = ({ checks }: BundleReport): readonly SectionFacts[] =>
  checks.map((check, index) => ({
    id: `chain-${index + 1}`,
    title: `Chained check: ${check.candidate}`,
    lead: checkSentence(check),
    body: [
      check.reasons.length > 0 &&
        markup`<ul class="findings">${check.reasons.map((reason) => markup`<li>${badge('fail', 'bad')} ${reason}</li>`)}</ul>`,
      agreementTable(check),
      driftFigure(check, index),
      driftTable(check),
      differenceTable(check),
      facts([
        ['reference', check.reference_backend],
        ['candidate', check.candidate_backend],
        ['samples', `${check.samples} of ${formatCount(check.frames)} frames, seed ${check.seed}`],
        ['emitted tokens', formatCount(check.emitted_tokens)],
        ['smallest margin', formatStatistic(check.smallest_margin)],
        ['took', formatMs(check.ms)],
      ]),
    ],
  }));

function agreementTable(check: ChainCheck) {
  const { decisions, token_agreement, duration_agreement, equal_sequences, samples, first_difference } =
    check;
  const row = (what: string, agreeing: number) => [
    what,
    formatCount(agreeing),
    formatCount(decisions),
    formatShare(agreementShare(agreeing, check)),
  ];
  const where =
    first_difference === null
      ? ''
      : ` The first difference is decision ${first_difference.index} of sample ${first_difference.sample}.`;
  return [
    table(
      'Decisions that are the same, led along those of the reference; sequences, decoded freely',
      [
        { title: 'what' },
        { title: 'same', numeric: true },
        { title: 'of', numeric: true },
        { title: 'share', numeric: true },
      ],
      [
        row('tokens', token_agreement),
        row('durations', duration_agreement),
        ['whole sequences', String(equal_sequences), String(samples), formatShare(equal_sequences / samples)],
      ],
    ),
    where !== '' && markup`<p class="muted">${where}</p>`,
  ];
}

function driftFigure(check: ChainCheck, index: number) {
  const { components, low_margin_share } = check;
  const finite = components.map(({ relative_rms }) => relative_rms ?? 0);
  // A bar that has no number is as long as the longest.
  const longest = Math.max(low_margin_share, ...finite);
  const rows = components.map((one) => ({
    label: one.component,
    text:
      one.relative_rms === null
        ? driftText(null)
        : `${driftText(one.relative_rms)} · ${formatShare(one.relative_rms / low_margin_share)} of the limit`,
    parts: [
      {
        amount: one.relative_rms ?? longest,
        tone: movesTooMuch(one.relative_rms, check) ? ('bad' as const) : ('accent' as const),
        name: changes(one),
      },
    ],
  }));
  return figure(
    barChart(
      {
        id: `chain-${index + 1}-drift`,
        title: `Relative error by component: ${check.candidate}`,
        description: rows.map(({ label, text }) => `${label}: ${text}`).join('; '),
      },
      rows,
    ),
    `How far the logits move, by root mean square over that of the reference, when one component alone is exchanged. The limit is ${formatShare(low_margin_share)}: up to there rounding explains it.`,
  );
}

const changes = ({ token_changes, duration_changes }: ComponentDrift): string =>
  `${token_changes} tokens and ${duration_changes} durations change`;

const driftTable = ({ components }: ChainCheck) =>
  table(
    'One component exchanged at a time',
    [
      { title: 'exchanged alone' },
      { title: 'relative error', numeric: true },
      { title: 'largest difference', numeric: true },
      { title: 'tokens change', numeric: true },
      { title: 'durations change', numeric: true },
    ],
    components.map((one) => [
      one.component,
      driftText(one.relative_rms),
      driftText(one.max_abs),
      formatCount(one.token_changes),
      formatCount(one.duration_changes),
    ]),
  );

const differenceTable = ({ differences, low_margin_share }: ChainCheck) =>
  differences.length > 0 &&
  table(
    `Decisions that differ, with the margin of the best logit over the second; up to ${formatShare(low_margin_share)} of the logits it is a low-margin decision`,
    [
      { title: 'sample' },
      { title: 'step', numeric: true },
      { title: 'what' },
      { title: 'reference', numeric: true },
      { title: 'candidate', numeric: true },
      { title: 'margin there', numeric: true },
      { title: 'margin here', numeric: true },
      { title: 'weight' },
    ],
    differences.map((one) => [
      ...differenceCells(one),
      formatStatistic(one.candidate_margin),
      one.low_margin ? badge('low margin', 'warn') : badge('wrong', 'bad'),
    ]),
  );
