import { shellLine } from '../../base/process/shell-quote.js';
import { formatBytes, formatCount, formatMs, formatStatistic } from '../../base/text/quantity.js';
import { barChart } from '../chart/bars.js';
import {
  badge,
  charts,
  code,
  command,
  type Figure,
  labelled,
  note,
  numbers,
  type Page,
  present,
  type Section,
  type Text,
  table,
} from '../section.js';
import { nameOfFile, outcomeTone, outcomeWord } from '../sentences.js';
import type { ComparedPart, ComparedRow, RunComparison } from './result.js';

/** The page of two runs: what differs in identity, then every part with its ratio or why there is none. */
export function comparisonPage(result: RunComparison): Page {
  const { a, b, parts } = result;
  const names = [...new Set([a, b].map(({ model }) => nameOfFile(model)))];
  const apart = parts.filter(({ notComparable }) => notComparable.length > 0);
  return {
    name: names.join(' and '),
    subtitle: `A: ${a.run} · B: ${b.run}`,
    kind: 'two runs',
    version: result.version,
    verdict: {
      outcome: apart.length === 0 ? 'pass' : 'inconclusive',
      word: apart.length === 0 ? 'Comparable' : 'Not all comparable',
      headline: headlineOf(parts),
      reasons: apart.flatMap(({ part, notComparable }) =>
        notComparable.map((reason) => `${titles[part]}: not comparable. ${reason}`),
      ),
      remedies: [],
    },
    figures: figuresOf(parts),
    sections: [
      runsSection(result),
      identitySection(result),
      ...parts.map((each) => partSection(each, result)),
      differencesSection('environment', 'Environment', result.environment),
    ],
  };
}

const titles: Readonly<Record<ComparedPart['part'], string>> = {
  engine: 'Engine',
  build: 'Build',
  precision: 'Precision',
  accuracy: 'Accuracy',
  speed: 'Speed',
};

/** The figures that people ask for first: of each of these parts the first row that has a ratio. */
const firstRatios = (parts: RunComparison['parts']): readonly ComparedRow[] =>
  ['speed', 'accuracy', 'engine', 'build'].flatMap(
    (name) => parts.find(({ part }) => part === name)?.rows.find(({ ratio }) => ratio !== null) ?? [],
  );

const figuresOf = (parts: RunComparison['parts']): readonly Figure[] =>
  firstRatios(parts).map(({ what, ratio }) => ({ text: `${formatStatistic(ratio)}×`, name: what }));

function headlineOf(parts: RunComparison['parts']): string {
  const ratios = firstRatios(parts).map(({ what, ratio }) => `${what} ${formatStatistic(ratio)}×`);
  return ratios.length === 0
    ? 'No figure of the two runs can be compared.'
    : `A over B: ${ratios.join(', ')}.`;
}

function runsSection({ a, b }: RunComparison): Section {
  const rows: readonly (readonly [string, (side: RunComparison['a']) => Text])[] = [
    ['run', ({ run }) => code(run)],
    [
      'verdict',
      ({ outcome }) => badge(outcomeWord[outcome], outcome === 'error' ? 'bad' : outcomeTone[outcome]),
    ],
    ['result', ({ headline }) => headline],
    ['model', ({ model }) => code(model)],
    ['precision', ({ precision }) => precision],
    ['target', ({ target }) => target ?? '–'],
    ['started', ({ startedAt }) => startedAt],
    ['trtforge', ({ version }) => version],
    ['engine', ({ engine }) => (engine === null ? '–' : code(engine))],
    ['identity', ({ identity }) => (identity === null ? '–' : code(identity.slice(0, 16)))],
  ];
  return {
    id: 'runs',
    title: 'The two runs',
    lead: 'Ratios are figures of A over those of B, as in bench compare: of times, above 1 means that A is slower.',
    blocks: [
      table(
        'What ran',
        ['', 'A', 'B'],
        rows.map(([name, of]) => [name, of(a), of(b)]),
      ),
    ],
  };
}

function identitySection({ identity }: RunComparison): Section {
  const title = 'Identity';
  if (identity === null) return { id: 'identity', title, lead: 'Not both runs have an engine.', blocks: [] };
  if (identity.equal) return { id: 'identity', title, lead: 'Both engines have one identity.', blocks: [] };
  return differencesSection('identity', title, identity.differences)!;
}

function differencesSection(
  id: string,
  title: string,
  differences: RunComparison['environment'],
): Section | null {
  if (differences.length === 0) return null;
  return {
    id,
    title,
    lead: `${formatCount(differences.length)} ${differences.length === 1 ? 'field differs' : 'fields differ'}.`,
    blocks: [
      table(
        'Fields that differ',
        ['field', 'A', 'B'],
        differences.map(({ field, a, b }) => [code(field), valueText(a), valueText(b)]),
      ),
    ],
  };
}

/** Digests are shortened: that they differ is what counts. */
function valueText(value: unknown): Text {
  if (value === undefined) return '–';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^[0-9a-f]{64}$/.test(text) ? code(`${text.slice(0, 16)}…`) : text;
}

function partSection(
  { part, notComparable, warnings, rows }: ComparedPart,
  { a, b }: RunComparison,
): Section {
  const isComparable = notComparable.length === 0;
  return {
    id: part,
    title: titles[part],
    lead: isComparable
      ? 'The figures of both runs can be compared.'
      : 'The figures of both runs cannot be compared, so they have no ratios.',
    blocks: [
      labelled('not comparable', 'bad', notComparable),
      labelled('warning', 'warn', warnings),
      table(
        `${titles[part]} of both runs`,
        ['figure', ...numbers('A', 'B', 'A / B')],
        rows.map((row) => [
          row.what,
          amountText(row.unit, row.a),
          amountText(row.unit, row.b),
          row.ratio === null ? '–' : `${formatStatistic(row.ratio)}×`,
        ]),
      ),
      ...(part === 'speed' && isComparable ? speedBlocks(rows, a.engine, b.engine) : []),
    ],
  };
}

/** How the rows of speed begin that are drawn. */
const GPU_MEDIAN = 'GPU time, median';

function speedBlocks(rows: readonly ComparedRow[], a: string | null, b: string | null) {
  const bars = rows
    .filter(({ what, ratio }) => what.startsWith(GPU_MEDIAN) && ratio !== null)
    .flatMap(({ what, ...row }) =>
      (['a', 'b'] as const).map((side) => ({
        label: `${side.toUpperCase()}${what.slice(GPU_MEDIAN.length)}`,
        amount: Number(row[side]),
        text: formatMs(Number(row[side])),
        tone: side === 'a' ? ('accent' as const) : ('quiet' as const),
        name: formatMs(Number(row[side])),
      })),
    );
  return present([
    bars.length === 0
      ? null
      : charts({ chart: barChart('Median GPU time of both runs', bars), caption: 'Shorter is faster.' }),
    ...(a === null || b === null
      ? []
      : [
          note(
            'The runs were measured at different times. This command measures both engines in turns, with a confidence interval:',
          ),
          command(shellLine(['trtforge', 'bench', 'compare', a, b])),
        ]),
  ]);
}

function amountText(unit: ComparedRow['unit'], amount: ComparedRow['a']): string {
  if (amount === null) return '–';
  const number = Number(amount);
  switch (unit) {
    case 'ms':
      return formatMs(number);
    case 'bytes':
      return formatBytes(number);
    case 'count':
      return formatCount(number);
    case 'per-second':
      return `${formatCount(Math.round(number))} a second`;
    case 'error':
      return formatStatistic(number);
  }
}
