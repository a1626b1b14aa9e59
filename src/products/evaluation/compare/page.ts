import { formatCount, formatMs, formatShare, plural } from '../../../base/text/quantity.js';
import type { Metric } from '../../../quality/tasks/task.js';
import {
  badge,
  charts,
  code,
  fold,
  labelled,
  lines,
  numbers,
  part,
  type Section,
  samples,
  type Text,
  table,
} from '../../../report/blocks.js';
import { defineReport } from '../../../report/pages/report.js';
import { repeatSection } from '../../../report/pages/section/run.js';
import { nameOfFile, outcomeWord } from '../../../report/sentences.js';
import { accuracyChart, latencyChart, precisionChart } from './charts.js';
import { type ComparedVariant, type Comparison, comparisonSchema } from './result.js';

/** For texts: "3 of 4 variants". */
export const countText = ({ variants }: Pick<Comparison, 'variants'>): string =>
  `${withFigures(variants).length} of ${plural(variants.length, 'variant')}`;

const COMPARISON_FILE = 'comparison.json';

/** The report of a comparison; its Markdown is summary.md. */
export const comparisonReport = defineReport<Comparison>({
  source: 'compare-backends',
  file: COMPARISON_FILE,
  result: comparisonSchema,
  page: (result) => {
    const isWhole = result.exitCode === 0;
    const outcome = isWhole ? 'pass' : 'inconclusive';
    return {
      name: nameOfFile(result.variants[0]?.model ?? result.root),
      subtitle: `${plural(new Set(result.variants.map(({ backEnd }) => backEnd)).size, 'back end')} compared by ${result.metric}`,
      kind: 'compare-backends',
      version: result.version,
      verdict: {
        outcome,
        word: isWhole ? 'Compared' : outcomeWord[outcome],
        headline: `${countText(result)} ran; others are compared with ${result.reference ?? 'none'}. Limits are the gate's: \`trtforge gate\`.`,
        reasons: notesOf(result),
      },
      sections: [
        figuresSection(result),
        notRunSection(result),
        differencesSection(result),
        textsSection(result),
        curvesSection(result),
        latencySection(result),
        placementSection(result),
        identitySection(result),
        repeatSection(result.repeat),
      ],
      dataFile: COMPARISON_FILE,
    };
  },
});

const withFigures = (variants: readonly ComparedVariant[]) =>
  variants.flatMap(({ figures, ...each }) => (figures === null ? [] : [{ ...each, figures }]));

const notesOf = ({ variants, damaged, notCompared, warnings }: Comparison): readonly string[] => [
  ...damaged.map(({ error }) => error.message),
  ...variants.flatMap(({ name, error }) => (error === null ? [] : [`${name} did not run: ${error.code}.`])),
  ...notCompared.map(
    ({ variant, reference, why }) => `${variant} is not compared with ${reference}: ${why}.`,
  ),
  ...warnings,
];

const metricText = ({ value, unit }: Metric): string =>
  value === null ? '–' : unit === 'share' ? value.toFixed(4) : value.toFixed(2);
const ms = (value: number | undefined): string => (value === undefined ? '–' : value.toFixed(2));

/** The columns are those of auto-quantize-model's summaries, and the other metrics. */
function figuresSection(result: Comparison): Section {
  const ran = withFigures(result.variants);
  const names = ran[0]?.figures.metrics.map(({ name }) => name) ?? [];
  return {
    id: 'figures',
    title: 'Figures',
    lead: `${countText(result)} ran over ${formatCount(ran[0]?.figures.samples ?? 0)} samples. Times are of ${result.task === 'wer' ? 'single utterances, from features to text' : 'single runs from host memory to host memory'}.`,
    blocks: [
      table(
        'Every variant',
        ['variant', ...numbers(...names, 'mean_ms', 'median_ms', 'p90_ms'), 'providers', 'file'],
        result.variants.map(({ name, figures, error, model }): readonly Text[] => {
          const cells = names.map((metric) => {
            const found = figures?.metrics.find((each) => each.name === metric);
            return found === undefined ? '–' : metricText(found);
          });
          const times = [figures?.latency?.mean_ms, figures?.latency?.median_ms, figures?.latency?.p90_ms];
          const where =
            figures === null
              ? badge(`not run: ${error?.code ?? 'no metrics.json'}`, 'warn')
              : figures.providers.join(', ');
          return [name, ...cells, ...times.map(ms), where, code(figures?.files[0]?.file ?? model)];
        }),
      ),
      labelled('not compared', 'warn', notComparedTexts(result)),
    ],
  };
}

const notComparedTexts = ({ notCompared }: Comparison): readonly string[] =>
  notCompared.map(({ variant, reference, why }) => `${variant} with ${reference}: ${why}.`);

function notRunSection({ variants, damaged }: Comparison): Section | null {
  const failed = [
    ...variants.flatMap(({ name, error }) => (error === null ? [] : [{ name, error }])),
    ...damaged.map(({ file, error }) => ({ name: file, error })),
  ];
  return failed.length === 0
    ? null
    : {
        id: 'not-run',
        title: 'Not run',
        lead: `${plural(failed.length, 'variant')} could not run here or cannot be read; the same command on another machine, with -o and this folder, adds them.`,
        blocks: [
          table(
            'Why',
            ['variant', 'error', 'what happened', 'what to do'],
            failed.map(({ name, error }) => [name, code(error.code), error.message, error.remedy]),
          ),
        ],
      };
}

/** Variants that compare with the reference: others are not drawn beside it. */
function comparable({ variants, reference }: Comparison) {
  const ran = withFigures(variants);
  const key = ran.find(({ name }) => name === reference)?.figures.comparabilityKey;
  return ran.filter(({ figures }) => figures.comparabilityKey === key);
}

const isHigherBetter = ({ variants }: Comparison): boolean =>
  withFigures(variants)[0]?.figures.metrics[0]?.higherIsBetter ?? true;

function differencesSection(result: Comparison): Section | null {
  const { accuracy, latency } = result;
  const chart = accuracyChart(result.metric, comparable(result));
  if (accuracy.length === 0 && chart === null) return null;
  const worst = accuracy.toSorted((a, b) => b.drop - a.drop)[0];
  return {
    id: 'differences',
    title: 'Accuracy against latency',
    lead:
      worst === undefined
        ? 'One variant has figures, so there is nothing to compare it with.'
        : `The largest drop of ${worst.metric} from ${worst.reference} is ${worst.drop.toFixed(4)} (${worst.variant}).`,
    blocks: [
      chart &&
        charts({
          chart,
          caption: `${isHigherBetter(result) ? 'Up' : 'Down'} is more accurate, left is faster.`,
        }),
      table(
        `Compared with ${result.reference}`,
        ['variant', 'metric', ...numbers('value', 'of the reference', 'drop', 'relative')],
        accuracy.map(({ variant, metric, value, of, drop, relativeDrop }) => [
          variant,
          metric,
          ...[value, of, drop].map((each) => each.toFixed(4)),
          relativeDrop === null ? '–' : `${(100 * relativeDrop).toFixed(2)} %`,
        ]),
      ),
      table(
        'Latency of candidates, of that of FP16 on the same back end and machine',
        ['variant', 'reference', ...numbers('median', 'of the reference', 'share')],
        latency.map(({ variant, reference, medianMs, of, share }) => [
          variant,
          reference,
          formatMs(medianMs),
          formatMs(of),
          formatShare(share),
        ]),
      ),
    ],
  };
}

/** What was heard otherwise, under the outline of its sound. */
function textsSection({ texts = [], reference }: Comparison): Section | null {
  const apart = texts.filter(({ differ }) => differ > 0);
  if (apart.length === 0) return null;
  return {
    id: 'texts',
    title: 'Texts that differ',
    lead: `What ${reference} heard, and what others heard instead: the utterances with the most words that differ first.`,
    blocks: apart.map(({ variant, differ, samples: worst }, at) =>
      part({
        id: `texts-${at}`,
        title: variant,
        lead: `${plural(differ, 'utterance')} differ${differ === 1 ? 's' : ''}.`,
        blocks: [samples(worst)],
      }),
    ),
  };
}

function curvesSection(result: Comparison): Section | null {
  const chart = precisionChart(comparable(result));
  return chart === null
    ? null
    : {
        id: 'precision-recall',
        title: 'Precision and recall',
        lead: 'Mean precision over the categories at 101 recalls, for an overlap of 0.50.',
        blocks: [charts({ chart, caption: 'One curve for every variant that compares with the reference.' })],
      };
}

function latencySection(result: Comparison): Section | null {
  const chart = latencyChart(withFigures(result.variants));
  return chart === null
    ? null
    : {
        id: 'latencies',
        title: 'Latencies',
        lead: 'The share of runs that took so long or less. A steep curve is a steady one.',
        blocks: [
          charts({ chart, caption: 'Each variant ran on the machine that "Providers and placement" names.' }),
        ],
      };
}

const placementSection = ({ variants }: Comparison): Section => ({
  id: 'placement',
  title: 'Providers and placement',
  lead: 'What ran each variant, where, and which nodes ran somewhere else.',
  blocks: [
    table(
      'Providers and placement',
      ['variant', 'back end', 'providers', 'machine', 'nodes elsewhere'],
      variants.map(({ name, backEnd, machine, figures }) => [
        name,
        backEnd,
        figures === null ? 'not run' : figures.providers.join(', '),
        machine,
        figures === null ? '–' : figures.placement.length === 0 ? 'none reported' : lines(figures.placement),
      ]),
    ),
  ],
});

const identitySection = ({ variants }: Comparison): Section => ({
  id: 'identities',
  title: 'Identities',
  lead: 'What ran, on which data: results compare where the comparability keys are equal.',
  blocks: [
    table(
      'Files and data, by their SHA-256',
      ['variant', 'file', 'engine', 'data', 'comparability key'],
      withFigures(variants).map(({ name, figures }) => [
        name,
        lines(figures.files.map(({ sha256 }) => code(sha256.slice(0, 16)))),
        figures.engineIdentity === null ? '–' : code(figures.engineIdentity.slice(0, 16)),
        code(figures.dataDigest.slice(0, 16)),
        code(figures.comparabilityKey.slice(0, 16)),
      ]),
    ),
    fold(
      'Identities of the variants: what is equal is not run again',
      table(
        'Identities',
        ['variant', 'status', 'identity'],
        variants.map(({ name, status, identity }) => [name, status, code(identity)]),
      ),
    ),
  ],
});
