import { formatCount, formatStatistic, plural } from '../../base/text/quantity.js';
import type { VerifiedOutput, VerifyResult } from '../../quality/verify/result.js';
import { type HistogramMark, histogramChart } from '../chart/histogram.js';
import { type Markup, markup } from '../markup.js';
import { badge, code, details, figure, type SectionFacts, table } from '../parts.js';
import type { ForgeResult } from '../result.js';
import { accuracySentence, formatMeasure, measureNumber } from '../sentences.js';

/** Statistics that fit a line; the table under "How it was measured" has all. */
const IN_SHORT: ReadonlySet<string> = new Set(['max', 'mean', 'p99', 'SNR in dB']);

const outcomeTone = { pass: 'good', fail: 'bad', inconclusive: 'warn' } as const;

/** How far the converted model is from the original. */
export const accuracySection = ({ verification }: ForgeResult): SectionFacts | null =>
  verification === null ? null : comparisonSection('accuracy', 'Accuracy', verification);

/** How far the engine, run on its GPU, is from the original. */
export const engineAccuracySection = ({ engineVerification }: ForgeResult): SectionFacts | null =>
  engineVerification === null
    ? null
    : comparisonSection('engine-accuracy', 'Accuracy of the engine', engineVerification);

/** Output by output, with the distribution of the error drawn. */
function comparisonSection(id: string, title: string, verification: VerifyResult): SectionFacts {
  const drawn = verification.outputs.filter(({ histogram }) => histogram.bins.length > 0);
  const figures = drawn.map((output, index) => outputFigure(output, `${id}-${index}`));
  return {
    id,
    title,
    lead: accuracySentence(verification),
    body: [
      shortTable(verification),
      drawn.length > 0 && markup`<div class="figures">${figures}</div>`,
      details('How it was measured', howMeasured(verification)),
    ],
  };
}

function shortTable({ outputs }: VerifyResult): Markup {
  const names = statisticNames(outputs).filter((name) => IN_SHORT.has(name));
  return table(
    'Absolute error of each output over all samples, and what decided',
    [
      { title: 'output' },
      { title: 'verdict' },
      { title: 'elements', numeric: true },
      ...names.map((title) => ({ title, numeric: true as const })),
      { title: 'checked' },
    ],
    outputs.map((output) => [
      code(output.name),
      badge(output.outcome, outcomeTone[output.outcome]),
      formatCount(output.elements),
      ...names.map((name) => statisticText(output, name)),
      output.checks.map(
        (check) =>
          markup`<span class="check">${check.statistic} ${formatMeasure(check.measured)} ${check.pass ? '≤' : '>'} ${formatStatistic(check.limit)}</span>`,
      ),
    ]),
  );
}

const statisticNames = (outputs: readonly VerifiedOutput[]): readonly string[] => [
  ...new Set(outputs.flatMap((output) => output.statistics.map((statistic) => statistic.name))),
];

function statisticText(output: VerifiedOutput, name: string): string {
  const found = output.statistics.find((statistic) => statistic.name === name);
  return found === undefined ? '–' : formatMeasure(found.amount);
}

function outputFigure(output: VerifiedOutput, id: string): Markup {
  const { histogram } = output;
  const chart = histogramChart(
    {
      id: `error-${id}`,
      title: `Distribution of the absolute error of ${output.name}`,
      description: describeDistribution(output),
    },
    {
      bins: histogram.bins,
      zeros: histogram.zeros,
      marks: marksOf(output),
      axis: '|difference|, log scale',
    },
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
    .filter(({ name }) => IN_SHORT.has(name))
    .map(({ name, amount }) => `${name} ${formatMeasure(amount)}`)
    .join(', ');
  return `${plural(elements, 'element')}, ${formatCount(histogram.zeros)} exactly equal; ${said}.`;
}

/** Statistics that lie on the axis of the histogram: they are absolute errors themselves. */
const ON_AXIS: ReadonlySet<string> = new Set(['max', 'mean', 'median', 'p90', 'p95', 'p99']);

function marksOf({ checks, statistics, tolerance, pass }: VerifiedOutput): readonly HistogramMark[] {
  const limits = checks
    .filter(({ statistic }) => ON_AXIS.has(statistic))
    .map(
      ({ statistic, limit }): HistogramMark => ({
        kind: 'limit',
        quantity: limit,
        label: `limit of ${statistic} ${formatStatistic(limit)}`,
        // A few elements may lie beyond the limit of a quantile or a mean, none beyond that of the maximum.
        beyond: statistic === 'max' ? 'bad' : 'warn',
      }),
    );
  if (limits.length === 0 && tolerance !== null) {
    // With a relative part in the tolerance, an error beyond the absolute part may still be allowed.
    const label = `absolute tolerance ${formatStatistic(tolerance.absolute)}`;
    limits.push({ kind: 'limit', quantity: tolerance.absolute, label, beyond: pass ? 'warn' : 'bad' });
  }
  const max = statistics.find((statistic) => statistic.name === 'max');
  if (max === undefined) return limits;
  return [
    ...limits,
    { kind: 'note', quantity: measureNumber(max.amount), label: `max ${formatMeasure(max.amount)}` },
  ];
}

function howMeasured(verification: VerifyResult): Markup {
  const { outputs, inputs, roundedValues } = verification;
  const names = statisticNames(outputs);
  const rounded =
    roundedValues > 0 &&
    ` ${plural(roundedValues, 'value')} of the candidate ${roundedValues === 1 ? 'was' : 'were'} computed in float32 and rounded to 16 bits, as a GPU stores them.`;
  return markup`<div><p>${code(verification.candidate)} on ${verification.candidateBackend} is held against ${code(verification.reference)} on ${verification.referenceBackend}, on ${plural(verification.samples, 'sample')} drawn with seed ${code(String(verification.seed))}.${rounded}</p>${table(
    'Inputs of the comparison',
    [{ title: 'input' }, { title: 'dtype' }, { title: 'shape' }, { title: 'drawn from' }],
    inputs.map((input) => [code(input.name), input.dtype, input.shape.join('×') || 'scalar', input.from]),
  )}${table(
    'Where each tolerance comes from',
    [
      { title: 'output' },
      { title: 'absolute', numeric: true },
      { title: 'relative', numeric: true },
      { title: 'why' },
    ],
    outputs.map(({ name, tolerance }) => [
      code(name),
      tolerance === null ? '–' : formatStatistic(tolerance.absolute),
      tolerance === null ? '–' : formatStatistic(tolerance.relative),
      tolerance?.why ?? 'integers and booleans are held against each other exactly',
    ]),
  )}${table(
    'Every statistic',
    [{ title: 'output' }, ...names.map((title) => ({ title, numeric: true as const }))],
    outputs.map((output) => [code(output.name), ...names.map((name) => statisticText(output, name))]),
  )}</div>`;
}
