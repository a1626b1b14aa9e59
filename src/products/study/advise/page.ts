import { formatBytes, formatMs, plural } from '../../../base/text/quantity.js';
import {
  badge,
  charts,
  code,
  command,
  facts,
  fold,
  numbers,
  type Section,
  type Text,
  table,
} from '../../../report/blocks.js';
import { type Decision, decided, decisionChart } from '../../../report/comparison/decision.js';
import { defineReport } from '../../../report/pages/report.js';
import { formatMeasure, nameOfFile } from '../../../report/sentences.js';
import { type Advice, adviceSchema, type Choice } from './result.js';

/** The report of `trtforge convert advise`. */
export const adviseReport = defineReport<Advice>({
  source: 'convert advise',
  file: 'advice.json',
  result: adviceSchema,
  page: (result) => ({
    name: nameOfFile(result.model),
    subtitle: `in ${result.precision.toUpperCase()}, the rest in ${result.rest.toUpperCase()}`,
    kind: 'Quantization',
    version: result.version,
    startedAt: result.startedAt,
    verdict: {
      outcome: 'pass',
      word: 'Found',
      headline: result.headline,
      reasons: [`The budget: ${budgetText(result)}. ${samplesText(result)}`],
    },
    figures: [
      {
        text: `${quantizedOf(result)} / ${result.units.length}`,
        name: `in ${result.precision.toUpperCase()}`,
      },
      { text: `${formatMeasure(chosenOf(result).sqnrDb)} dB`, name: 'signal to noise' },
      { text: formatBytes(chosenOf(result).bytes), name: 'model' },
    ],
    sections: [choiceSection(result), unitSection(result), latencySection(result), trialSection(result)],
    dataFile: 'advice.json',
  }),
});

const quantizedOf = ({ units }: Advice): number => units.filter(({ quantized }) => quantized).length;

const choiceOf = ({ choices }: Advice, id: number): Choice => choices.find((choice) => choice.id === id)!;
const chosenOf = (result: Advice): Choice => choiceOf(result, result.chosen);

export const budgetText = ({ budget, task }: Pick<Advice, 'budget' | 'task'>): string =>
  budget.kind === 'sqnr'
    ? `at least ${budget.db} dB`
    : `${task?.metric.name} at most ${budget.drop} worse than FP32's`;

export const samplesText = ({ samples, judged }: Advice): string =>
  `Signal to noise of ${judged.join(', ')} over ${plural(samples.heldOut, 'held-out sample')}: ${samples.rule}.`;

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

const metricText = (value: number | null): string => (value === null ? '' : value.toFixed(4));

function choiceSection(result: Advice): Section {
  const { task, latency } = result;
  const fp32 = result.choices.find(({ role }) => role === 'fp32');
  const named: readonly (readonly [string, Choice | undefined])[] = [
    ['FP32', fp32],
    [`all in ${result.rest.toUpperCase()}`, choiceOf(result, result.without)],
    [`all in ${result.precision.toUpperCase()}`, choiceOf(result, result.all)],
    ['advised', chosenOf(result)],
  ];
  const decision = decisionOf(result);
  const chart = decisionChart(decision, `advised: ${chosenOf(result).what}`);
  const timeOf = ({ id }: Choice) => latency?.choices.find((each) => each.id === id)?.medianMs;
  return {
    id: 'choice',
    title: 'What is advised',
    lead: result.headline,
    blocks: [
      table(
        'Before and after',
        [
          'model',
          ...numbers('SQNR in dB', 'cosine, least'),
          ...(task === null ? [] : numbers(task.metric.name)),
          ...numbers('size', 'multiply-adds', 'weights'),
          ...(latency === null ? [] : numbers('median')),
        ],
        named.flatMap(([name, choice]) =>
          choice === undefined
            ? []
            : [
                [
                  name,
                  formatMeasure(choice.sqnrDb),
                  formatMeasure(choice.cosineMin),
                  ...(task === null ? [] : [metricText(choice.metric)]),
                  formatBytes(choice.bytes),
                  percent(choice.macsShare),
                  percent(choice.weightsShare),
                  ...(latency === null ? [] : [timeText(timeOf(choice))]),
                ],
              ],
        ),
      ),
      chart &&
        charts({
          chart,
          caption: 'Left costs less, down is closer to FP32. Green: advised.',
        }),
      facts([
        ['model', code(result.output)],
        ['ranges', code(result.calibration)],
        [
          'what is estimated',
          'Shares of multiply-adds and weights in the low type estimate the gain; latency needs a GPU.',
        ],
      ]),
      command(result.convert),
    ],
  };
}

const timeText = (ms: number | undefined): string => (ms === undefined ? '' : formatMs(ms));

/** The choices as points: by their time where engines were measured, else by size, and by how much of the budget their error takes. */
export function decisionOf({ choices, latency, budget, task, chosen }: Advice): Decision {
  const fp32 = choices.find(({ role }) => role === 'fp32')?.metric ?? null;
  const errorOf = ({ sqnrDb, metric }: Choice): number | null => {
    if (budget.kind === 'sqnr') return 10 ** ((budget.db - Number(sqnrDb)) / 20);
    if (fp32 === null || metric === null) return null;
    return task?.metric.higherIsBetter === false ? metric - fp32 : fp32 - metric;
  };
  return decided(
    {
      cost: latency === null ? { what: 'size', unit: 'bytes' } : { what: 'median latency', unit: 'ms' },
      error:
        budget.kind === 'sqnr'
          ? { what: 'error, share of the budget', unit: 'share', limit: 1 }
          : { what: `loss of ${task?.metric.name}`, unit: 'number', limit: budget.drop },
    },
    choices.filter(isPoint).map((choice) => {
      const time = latency?.choices.find(({ id }) => id === choice.id)?.medianMs;
      const error = errorOf(choice);
      return {
        name: `${choice.id === chosen ? 'advised: ' : ''}${choice.what}`,
        outcome: null,
        cost: latency === null ? choice.bytes : (time ?? null),
        error,
        missing: [
          ...(latency !== null && time === undefined ? ['not measured'] : []),
          ...(error === null ? ['not scored'] : []),
        ],
      };
    }),
  );
}

/** FP32 itself has no error. */
const isPoint = ({ role }: Choice): boolean => role !== 'fp32';

function unitSection(result: Advice): Section {
  const { units, ruledOut, task, precision } = result;
  const worstFirst = [...units].sort((a, b) => Number(b.alone.noise) - Number(a.alone.noise));
  const kept = units.filter(({ quantized }) => !quantized);
  return {
    id: 'units',
    title: 'Sensitivity',
    lead:
      kept.length === 0
        ? `Everything that can be quantized is in ${precision.toUpperCase()}.`
        : `${plural(kept.length, 'unit')} of ${units.length} left out; ${worstFirst[0]?.name} alone makes the largest error.`,
    blocks: [
      table(
        'Each alone in the low type, the most sensitive first',
        [
          'unit',
          'operator',
          ...numbers('SQNR in dB', 'cosine, least'),
          ...(task === null ? [] : numbers(task.metric.name)),
          ...numbers('multiply-adds', 'weights'),
          'type',
          'why',
        ],
        worstFirst.map(({ name, op, alone, macsShare, weightsShare, quantized, why }): readonly Text[] => [
          code(name),
          op,
          formatMeasure(alone.sqnrDb),
          formatMeasure(alone.cosineMin),
          ...(task === null ? [] : [metricText(alone.metric)]),
          percent(macsShare),
          percent(weightsShare),
          quantized ? badge(precision.toUpperCase(), 'good') : badge(result.rest.toUpperCase(), 'quiet'),
          why,
        ]),
      ),
      ruledOut.length === 0
        ? null
        : fold(
            `${plural(ruledOut.length, 'node')} that the placement rules keep out`,
            table(
              'Kept out by rules',
              ['node', 'operator', 'rule', 'why'],
              ruledOut.map(({ node, op, rule, reason }) => [code(node), op, rule, reason]),
            ),
          ),
    ],
  };
}

function latencySection({ latency, precision }: Advice): Section | null {
  if (latency === null) return null;
  const rows = (all: typeof latency.slower) =>
    all.map(({ unit, ms, layers }) => [
      unit === null ? 'conversions of no unit' : code(unit),
      formatMs(ms.before),
      formatMs(ms.after),
      layers.join('; '),
    ]);
  const columns = ['unit', ...numbers('without', precision.toUpperCase()), 'layers'];
  return {
    id: 'latency',
    title: 'Latency',
    lead: `${latency.speedup.toFixed(2)} times as fast as the model that is not quantized.${latency.isSlower ? ` Before anything was undone, ${precision.toUpperCase()} was slower.` : ''}`,
    blocks: [
      table('Undone: not at least 1.02 times as fast', columns, rows(latency.undone)),
      table('Layers that take longer in the low type', columns, rows(latency.slower)),
    ],
  };
}

function trialSection(result: Advice): Section {
  const { choices, tried, repeat } = result;
  const { points } = decisionOf(result);
  const isFront = new Map(choices.filter(isPoint).map(({ id }, at) => [id, points[at]?.isFront]));
  return {
    id: 'trials',
    title: 'What was tried',
    lead: `${plural(choices.length, 'choice')}, of which this run tried ${tried}.`,
    blocks: [
      fold(
        'All choices',
        table(
          'Choices',
          [
            ...numbers('no.'),
            'what',
            'front',
            ...numbers('SQNR in dB', 'cosine, least', 'size', 'convert', 'run', 'score'),
          ],
          choices.map(({ id, what, sqnrDb, cosineMin, bytes, ms }) => [
            String(id),
            what,
            isFront.get(id) ? badge('front', 'accent') : '–',
            formatMeasure(sqnrDb),
            formatMeasure(cosineMin),
            formatBytes(bytes),
            formatMs(ms.convert),
            formatMs(ms.run),
            formatMs(ms.score),
          ]),
        ),
      ),
      repeat === null ? null : command(repeat),
    ],
  };
}
