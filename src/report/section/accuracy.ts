import { type HistogramMark, histogramChart } from '../chart/histogram.js';
import { type Markup, markup } from '../markup.js';
import { badge, code, details, figure, type SectionFacts, table } from '../parts.js';
import { formatCount, formatStatistic, plural } from '../quantity.js';
import type { ForgeResult, ReportVerification, VerifiedOutput } from '../result.js';
import { accuracySentence, formatMeasure, measureNumber } from '../sentences.js';

/** Statistics that lie on the axis of the histogram: they are absolute errors themselves. */
const ON_AXIS: ReadonlySet<string> = new Set(['max', 'p99', 'median']);

/** How far the converted model is from the original, output by output, with the distribution of the error drawn. */
export function accuracySection({ verification }: ForgeResult): SectionFacts | null {
  if (verification === null) return null;
  return {
    id: 'accuracy',
    title: 'Accuracy',
    lead: accuracySentence(verification),
    body: [
      statisticsTable(verification),
      markup`<div class="figures">${verification.outputs.map(outputFigure)}</div>`,
      howMeasured(verification),
    ],
  };
}

function statisticsTable({ outputs }: ReportVerification): Markup {
  const names = [
    ...new Set(outputs.flatMap((output) => output.statistics.map((statistic) => statistic.name))),
  ];
  return table(
    'Absolute error of each output, and the checks it had to pass',
    [
      { title: 'output' },
      { title: 'verdict' },
      { title: 'elements', numeric: true },
      ...names.map((title) => ({ title, numeric: true as const })),
      { title: 'checked' },
    ],
    outputs.map((output) => [
      code(output.name),
      badge(output.pass ? 'pass' : 'fail', output.pass ? 'good' : 'bad'),
      formatCount(output.elements),
      ...names.map((name) => {
        const found = output.statistics.find((statistic) => statistic.name === name);
        return found === undefined ? '–' : formatMeasure(found.amount);
      }),
      output.checks.map(
        (check) =>
          markup`<span class="check">${check.statistic} ${formatMeasure(check.measured)} ${check.pass ? '≤' : '>'} ${formatStatistic(check.limit)}</span>`,
      ),
    ]),
  );
}

function outputFigure(output: VerifiedOutput, index: number): Markup {
  const { histogram } = output;
  const chart = histogramChart(
    {
      id: `error-${index}`,
      title: `Distribution of the absolute error of ${output.name}`,
      description: describeDistribution(output),
    },
    { bins: histogram.bins, zeros: histogram.zeros, marks: marksOf(output), axis: '|difference|, log scale' },
  );
  const nonFinite =
    histogram.nonFinite > 0 &&
    markup` <strong>${plural(histogram.nonFinite, 'element')} not finite on one side have no place on the axis.</strong>`;
  return figure(
    chart,
    markup`Absolute error of ${code(output.name)} (${output.dtype}, ${output.shape.join('×') || 'scalar'}), ${plural(output.elements, 'element')}.${nonFinite}`,
  );
}

function describeDistribution({ elements, histogram, statistics }: VerifiedOutput): string {
  const said = statistics
    .map((statistic) => `${statistic.name} ${formatMeasure(statistic.amount)}`)
    .join(', ');
  return `${plural(elements, 'element')}, ${formatCount(histogram.zeros)} exactly equal; ${said}.`;
}

function marksOf(output: VerifiedOutput): readonly HistogramMark[] {
  const limits = output.checks
    .filter((check) => ON_AXIS.has(check.statistic))
    .map(
      (check): HistogramMark => ({
        quantity: check.limit,
        label: `limit of ${check.statistic} ${formatStatistic(check.limit)}`,
        kind: 'limit',
      }),
    );
  const max = output.statistics.find((statistic) => statistic.name === 'max');
  const note: readonly HistogramMark[] =
    max === undefined
      ? []
      : [{ quantity: measureNumber(max.amount), label: `max ${formatMeasure(max.amount)}`, kind: 'note' }];
  return [...limits, ...note];
}

function howMeasured(verification: ReportVerification): Markup {
  return details(
    'How it was measured',
    markup`<p>${verification.candidate} is held against ${verification.reference} on ${plural(verification.samples, 'sample')} drawn with seed ${code(String(verification.seed))}.</p>${table(
      'Inputs of the comparison',
      [{ title: 'input' }, { title: 'dtype' }, { title: 'shape' }, { title: 'drawn from' }],
      verification.inputs.map((input) => [
        code(input.name),
        input.dtype,
        input.shape.join('×') || 'scalar',
        input.from,
      ]),
    )}`,
  );
}
