import { formatCount, formatStatistic, plural } from '../../../base/text/quantity.js';
import { sliceText, worstFirst } from '../../../quality/verify/checks.js';
import { blindSpots, checkedLines, decidedBy, verifyHeadline } from '../../../quality/verify/headline.js';
import { plantedText } from '../../../quality/verify/planted-errors.js';
import type { VerifiedOutput, VerifyResult } from '../../../quality/verify/result.js';
import {
  type Block,
  type Blocks,
  badge,
  charts,
  code,
  facts,
  fold,
  labelled,
  lines,
  note,
  numbers,
  part,
  type Section,
  samples,
  strong,
  type Text,
  table,
} from '../../blocks.js';
import { errorMapChart, type HistogramMark, histogramChart } from '../../chart/errors.js';
import type { Chart } from '../../chart/frame.js';
import { formatMeasure, IN_SHORT, outcomeTone, shortStatistics } from '../../sentences.js';

/** A verification, as a section. */
export const verificationSection = (id: string, title: string, verification: VerifyResult): Section => ({
  id,
  title,
  lead: verifyHeadline(verification),
  blocks: [
    ...errorBlocks(verification),
    ...sampleBlocks(verification),
    labelled('not judged', 'warn', blindSpots(verification)),
    fold('How it was measured', ...howMeasured(verification)),
  ],
});

/** The worst pictures or recordings; what both sides state of them is drawn. */
function sampleBlocks({ worstSamples = [], precision }: VerifyResult): Blocks {
  if (worstSamples.length === 0) return [];
  const drawn = samples(worstSamples);
  const lead = `${plural(worstSamples.length, 'sample')}, those with the most decisions turned first, then those with the largest errors, with what the original and the ${precision.toUpperCase()} candidate state of each. Dashed boxes are those that only one of them has.`;
  return [part({ id: 'worst-samples', title: 'Worst samples', lead, blocks: [drawn] })];
}

type Errors = Pick<VerifyResult, 'outputs' | 'errorMap' | 'samples'> & {
  /** Each sample that ran. */
  readonly samplesFrom?: { readonly samples: readonly { readonly origin: string; readonly kind: string }[] };
};

/** The decision, then the outputs, the worst first, with the distribution of the error drawn, and its places in the output that decided. */
export function errorBlocks(result: Errors): Blocks {
  const { errorMap } = result;
  const outputs = worstFirst(result.outputs);
  const names = statisticNames(outputs).filter((name) => IN_SHORT.has(name));
  return [
    decisionFacts(result),
    table(
      'Absolute error of each output over all samples, and what decided',
      ['output', 'verdict', ...numbers('elements', ...names), 'checked'],
      outputs.map((output) => [
        code(output.name),
        badge(output.outcome, outcomeTone[output.outcome]),
        formatCount(output.elements),
        ...names.map((name) => statisticText(output, name)),
        lines(checkedLines(output)),
      ]),
    ),
    charts(
      ...outputs
        .filter(({ histogram }) => histogram.bins.length > 0)
        .map((output) => ({ chart: errorChart(output), caption: errorCaption(output) })),
    ),
    errorMap === undefined
      ? null
      : charts({
          chart: errorMapChart(errorMap),
          caption: [
            'Where the error of ',
            code(errorMap.tensor),
            ' is: the mean absolute error over the two longest axes, other axes and samples averaged.',
          ],
        }),
  ];
}

const kinds = Object.entries({ data: "of the user's data", drawn: 'drawn', edge: 'edge cases' });

/** The samples that judged, and the output, sample and slice that decided with their numbers. */
function decisionFacts(result: Errors): Block | null {
  const { samples, samplesFrom } = result;
  const decided = decidedBy(result);
  if (decided === null) return null;
  const { output, check, severity, isLimit, text } = decided;
  const { bound, slice, sample } = check;
  const byKind = kinds.flatMap(([kind, name]) => {
    const count = samplesFrom?.samples.filter((each) => each.kind === kind).length ?? 0;
    return count === 0 ? [] : [`${count} ${name}`];
  });
  const times =
    isLimit && bound === undefined && Number.isFinite(severity) ? formatStatistic(severity) : null;
  return facts([
    ['samples', [String(samples), ...byKind].join(', ')],
    ['decided by', output.name],
    ['slice', slice === undefined ? null : sliceText(slice.axis, slice.position)],
    [
      'worst sample',
      sample === undefined ? null : `${sample} ${samplesFrom?.samples[sample]?.origin ?? ''}`.trim(),
    ],
    ['measured', text],
    ['margin', times === null ? null : `${times} times the limit`],
    ['would pass too', output.planted.length === 0 ? null : lines(output.planted.map(plantedText))],
  ]);
}

const statisticNames = (outputs: readonly VerifiedOutput[]): readonly string[] => [
  ...new Set(outputs.flatMap((output) => output.statistics.map((statistic) => statistic.name))),
];

function statisticText(output: VerifiedOutput, name: string): string {
  const found = output.statistics.find((statistic) => statistic.name === name);
  return found === undefined ? '–' : formatMeasure(found.amount);
}

function errorChart(output: VerifiedOutput): Chart {
  const { elements, histogram } = output;
  return histogramChart({
    title: `Distribution of the absolute error of ${output.name}`,
    description: `${plural(elements, 'element')}, ${formatCount(histogram.zeros)} exactly equal; ${shortStatistics(output)}.`,
    bins: histogram.bins,
    zeros: histogram.zeros,
    marks: marksOf(output),
    axis: '|difference|, log scale',
  });
}

function errorCaption({ name, dtype, shape, elements, histogram }: VerifiedOutput): Text {
  const nonFinite = plural(histogram.nonFinite, 'element');
  return [
    'Absolute error of ',
    code(name),
    ` (${dtype}, ${shape.join('×') || 'scalar'}), ${plural(elements, 'element')}.`,
    histogram.nonFinite > 0
      ? [' ', strong(`${nonFinite} not finite on one side have no place on the axis.`)]
      : '',
  ];
}

/** Statistics that lie on the axis of the histogram: they are absolute errors themselves. */
const ON_AXIS: ReadonlySet<string> = new Set(['max', 'mean', 'median', 'p99', 'p99 of non-zeros', 'RMS']);

function marksOf({ checks, statistics, tolerance, pass }: VerifiedOutput): readonly HistogramMark[] {
  const limits = checks
    .filter(({ statistic }) => ON_AXIS.has(statistic))
    .map(({ statistic, limit, slice, sample }): HistogramMark => {
      const where = [
        ...(slice === undefined ? [] : [`position ${slice.position}`]),
        ...(sample === undefined ? [] : [`sample ${sample}`]),
      ].join(', ');
      const label = `${statistic} limit ${formatStatistic(limit)}${where === '' ? '' : ` (${where})`}`;
      const mark = { quantity: limit, label };
      // Other slices have limits of their own.
      if (slice !== undefined) return { ...mark, kind: 'note' };
      // A few elements may lie beyond the limit of a quantile or a mean, none beyond that of the maximum.
      return { ...mark, kind: 'limit', beyond: statistic === 'max' ? 'bad' : 'warn' };
    });
  if (limits.length === 0 && tolerance !== null) {
    // With a relative part in the tolerance, an error beyond the absolute part may still be allowed.
    const label = `absolute tolerance ${formatStatistic(tolerance.absolute)}`;
    limits.push({ kind: 'limit', quantity: tolerance.absolute, label, beyond: pass ? 'warn' : 'bad' });
  }
  const max = statistics.find((statistic) => statistic.name === 'max');
  if (max === undefined) return limits;
  return [
    ...limits,
    { kind: 'note', quantity: Number(max.amount), label: `max ${formatMeasure(max.amount)}` },
  ];
}

function howMeasured(verification: VerifyResult): readonly (Block | null)[] {
  const { outputs, inputs, roundedValues } = verification;
  const names = statisticNames(outputs);
  const rounded =
    roundedValues === 0
      ? ''
      : ` ${plural(roundedValues, 'value')} of the candidate ${roundedValues === 1 ? 'was' : 'were'} computed in float32 and rounded to 16 bits, as a GPU stores them.`;
  return [
    note(
      code(verification.candidate),
      ` on ${verification.candidateBackend} is compared with `,
      code(verification.reference),
      ` on ${verification.referenceBackend}, on ${plural(verification.samples, 'sample')} drawn with seed `,
      code(String(verification.seed)),
      `.${rounded}`,
    ),
    table(
      'Inputs of the comparison',
      ['input', 'dtype', 'shape', 'drawn from'],
      inputs.map((input) => [code(input.name), input.dtype, input.shape.join('×') || 'scalar', input.from]),
    ),
    table(
      'Where each tolerance comes from',
      ['output', ...numbers('absolute', 'relative'), 'why'],
      outputs.map(({ name, tolerance }) => [
        code(name),
        tolerance === null ? '–' : formatStatistic(tolerance.absolute),
        tolerance === null ? '–' : formatStatistic(tolerance.relative),
        tolerance?.why ?? 'integers and booleans are compared exactly',
      ]),
    ),
    table(
      'Every statistic, over all elements',
      ['output', ...numbers(...names)],
      outputs.map((output) => [code(output.name), ...names.map((name) => statisticText(output, name))]),
    ),
  ];
}
