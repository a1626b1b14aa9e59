import { shellLine } from '../../base/process/shell-quote.js';
import {
  formatBytes,
  formatCount,
  formatMs,
  formatShare,
  formatStatistic,
} from '../../base/text/quantity.js';
import { barChart } from '../chart/frame.js';
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
import type { ComparedPart, ComparedRow, ComparedSide, RunComparison } from './result.js';
import { MEDIANS } from './speed.js';

/** The page of two results: what differs in identity, then every part with its ratio or why there is none. */
export function comparisonPage(result: RunComparison): Page {
  const { a, b, parts } = result;
  const names = [...new Set([a, b].map(({ model, engine, run }) => nameOfFile(model ?? engine ?? run)))];
  const apart = parts.filter(({ notComparable }) => notComparable.length > 0);
  const doubtful = parts.filter(({ doubts }) => doubts.length > 0);
  const isSound = apart.length === 0 && doubtful.length === 0;
  return {
    name: names.join(' and '),
    subtitle: `A: ${a.run} · B: ${b.run}`,
    kind: `two results of ${result.kind}`,
    version: result.version,
    verdict: {
      outcome: isSound ? 'pass' : 'inconclusive',
      word: doubtful.length > 0 ? 'Unreliable' : isSound ? 'Comparable' : 'Not all comparable',
      headline: headlineOf(parts),
      reasons: [
        ...doubtful.flatMap((part) => part.doubts.map((doubt) => `${titleOf(part)}: ${doubt}`)),
        ...apart.flatMap((part) =>
          part.notComparable.map((reason) => `${titleOf(part)}: not comparable. ${reason}`),
        ),
      ],
      remedies: [],
    },
    figures: figuresOf(parts),
    sections: [
      runsSection(result),
      identitySection(result),
      ...parts.map((each, index) => partSection(each, index, result)),
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

const titleOf = ({ part, of }: ComparedPart): string =>
  of === null ? titles[part] : `${titles[part]}: ${of}`;

/** The figures that people ask for first: of each of these parts the first row that has a ratio. */
const firstRatios = (parts: RunComparison['parts']): readonly Pick<ComparedRow, 'what' | 'ratio'>[] =>
  ['speed', 'accuracy', 'engine', 'build'].flatMap((name) => {
    const { of, rows } = parts.find(({ part }) => part === name) ?? { of: null, rows: [] };
    const first = rows.find(({ ratio }) => ratio !== null);
    return first === undefined ? [] : { ...first, what: `${of === null ? '' : `${of}: `}${first.what}` };
  });

const figuresOf = (parts: RunComparison['parts']): readonly Figure[] =>
  firstRatios(parts).map(({ what, ratio }) => ({ text: `${formatStatistic(ratio)}×`, name: what }));

function headlineOf(parts: RunComparison['parts']): string {
  const ratios = firstRatios(parts).map(({ what, ratio }) => `${what} ${formatStatistic(ratio)}×`);
  return ratios.length === 0 ? 'No figure of the two can be compared.' : `A over B: ${ratios.join(', ')}.`;
}

function runsSection({ a, b }: RunComparison): Section {
  const rows: readonly (readonly [string, (side: ComparedSide) => Text | null])[] = [
    ['run', ({ run }) => code(run)],
    ['verdict', ({ outcome }) => outcome && badge(outcomeWord[outcome], outcomeTone[outcome])],
    ['result', ({ headline }) => headline],
    ['model', ({ model }) => model && code(model)],
    ['precision', ({ precision }) => precision],
    ['target', ({ target }) => target],
    ['started', ({ startedAt }) => startedAt],
    ['trtforge', ({ version }) => version],
    ['engine', ({ engine }) => engine && code(engine)],
    ['identity', ({ identity }) => identity && code(identity.slice(0, 16))],
  ];
  return {
    id: 'runs',
    title: 'What is compared',
    lead: 'Ratios are figures of A over those of B, as in bench compare: of times, above 1 means that A is slower.',
    blocks: [
      table(
        'The two results',
        ['', 'A', 'B'],
        rows.flatMap(([name, of]) => {
          const texts = [of(a), of(b)];
          return texts.every((text) => text === null) ? [] : [[name, ...texts.map((text) => text ?? '–')]];
        }),
      ),
    ],
  };
}

function identitySection({ identity }: RunComparison): Section | null {
  const title = 'Identity';
  if (identity === null) return null;
  if (identity.equal) return { id: 'identity', title, lead: 'The identities are equal.', blocks: [] };
  return differencesSection('identity', title, identity.differences);
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

function partSection(compared: ComparedPart, index: number, { a, b }: RunComparison): Section {
  const { part, of, notComparable, warnings, doubts, rows } = compared;
  const title = titleOf(compared);
  const isComparable = notComparable.length === 0;
  return {
    id: of === null ? part : `${part}-${index + 1}`,
    title,
    lead: isComparable
      ? doubts.length > 0
        ? 'A measurement is unreliable, so their ratio is too.'
        : 'The figures of both can be compared.'
      : 'The figures of both cannot be compared, so they have no ratios.',
    blocks: [
      labelled('not comparable', 'bad', notComparable),
      labelled('unreliable', 'warn', doubts),
      labelled('warning', 'warn', warnings),
      table(
        `${title}, of both`,
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

function speedBlocks(rows: readonly ComparedRow[], a: string | null, b: string | null) {
  const drawn = MEDIANS.find((median) => rows.some(({ what }) => what.startsWith(median))) ?? MEDIANS[0];
  const bars = rows
    .filter(({ what, ratio }) => what.startsWith(drawn) && ratio !== null)
    .flatMap(({ what, ...row }) =>
      (['a', 'b'] as const).map((side) => ({
        label: `${side.toUpperCase()}${what.slice(drawn.length)}`,
        amount: Number(row[side]),
        text: formatMs(Number(row[side])),
        tone: side === 'a' ? ('accent' as const) : ('quiet' as const),
      })),
    );
  return present([
    bars.length === 0
      ? null
      : charts({ chart: barChart(`Both: ${drawn}`, bars), caption: 'Shorter is faster.' }),
    ...(a === null || b === null
      ? []
      : [
          note(
            'The two were measured at different times. This command measures both engines in turns, with a confidence interval:',
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
    case 'share':
      return formatShare(number);
  }
}
