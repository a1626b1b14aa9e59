import {
  formatBytes,
  formatCount,
  formatMs,
  formatShare,
  formatStatistic,
} from '../../base/text/quantity.js';
import { shellLine } from '../../base/text/shell-line.js';
import {
  badge,
  charts,
  code,
  command,
  labelled,
  note,
  numbers,
  type Page,
  present,
  type Section,
  type Text,
  table,
} from '../blocks.js';
import { type Bar, barChart } from '../chart/bars.js';
import { letterOf } from '../comparison/compare.js';
import { decisionSection, frontSentence } from '../comparison/decision.js';
import type {
  ComparedPair,
  ComparedPart,
  ComparedRow,
  ComparedSide,
  RunComparison,
} from '../comparison/result.js';
import { PLAN_ROWS, PLAN_SIZE } from '../comparison/runs.js';
import { MEDIANS } from '../comparison/speed.js';
import { nameOfFile, outcomeTone, outcomeWord } from '../sentences.js';
import { PLAN_COLOURS, planParts } from './section/engine.js';

/** The page of several results: which to take, what differs in identity, then every part with its ratios or why there is none. */
export function comparisonPage(result: RunComparison): Page {
  const { runs, pairs } = result;
  const parts = mergedParts(result);
  const names = [...new Set(runs.map(({ model, engine, run }) => nameOfFile(model ?? engine ?? run)))];
  const reasonsOf = (name: ReasonKind, said: string) =>
    parts.flatMap((each) => reasons(each, name).map((reason) => `${titleOf(each)}: ${said}${reason}`));
  const [apart, doubtful] = [reasonsOf('notComparable', 'not comparable. '), reasonsOf('doubts', '')];
  const isSound = apart.length === 0 && doubtful.length === 0;
  return {
    name: names.join(' and '),
    subtitle: runs.map(({ run }, at) => `${letterOf(at)}: ${run}`).join(' · '),
    kind: `${runs.length} results of ${result.kind}`,
    version: result.version,
    verdict: {
      outcome: isSound ? 'pass' : 'inconclusive',
      word: doubtful.length > 0 ? 'Unreliable' : isSound ? 'Comparable' : 'Not all comparable',
      headline: headlineOf(result),
      reasons: [...doubtful, ...apart],
      remedies: [],
    },
    figures:
      pairs.length > 1
        ? []
        : firstRatios(pairs[0]!.parts).map(({ what, ratio }) => ({ text: ratio, name: what })),
    sections: [
      result.decision && decisionSection(result.decision),
      runsSection(result),
      differencesSection(
        'identity',
        'Identity',
        pairs.map(({ identity }) => identity?.differences ?? null),
        pairs.every(({ identity }) => identity?.equal) ? 'The identities are equal.' : null,
      ),
      ...parts.map((each, index) => partSection(each, index, result)),
      differencesSection(
        'environment',
        'Environment',
        pairs.map(({ environment }) => environment),
      ),
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

const titleOf = ({ part, of }: Pick<ComparedPart, 'part' | 'of'>): string =>
  of === null ? titles[part] : `${titles[part]}: ${of}`;

/** A part of all pairs: of each its place, its letters and its figures. */
interface MergedPart extends Pick<ComparedPart, 'part' | 'of'> {
  readonly sides: readonly { readonly at: number; readonly of: string; readonly part: ComparedPart }[];
}

type ReasonKind = 'notComparable' | 'doubts' | 'warnings';

/** Sentences of a part, each once; one that is not about all pairs names its own. */
function reasons({ sides }: MergedPart, kind: ReasonKind): readonly string[] {
  const texts = [...new Set(sides.flatMap(({ part }) => part[kind]))];
  return texts.map((text) => {
    const about = sides.filter(({ part }) => part[kind].includes(text));
    return about.length === sides.length ? text : `${about.map(({ of }) => of).join(', ')}: ${text}`;
  });
}

function mergedParts({ pairs }: RunComparison): readonly MergedPart[] {
  const merged = new Map<string, MergedPart & { sides: MergedPart['sides'][number][] }>();
  for (const [at, { parts }] of pairs.entries())
    for (const part of parts) {
      const key = titleOf(part);
      const known = merged.get(key) ?? { part: part.part, of: part.of, sides: [] };
      const of = `${letterOf(at)} and ${letterOf(pairs.length)}`;
      known.sides.push({ at, of, part });
      merged.set(key, known);
    }
  return [...merged.values()];
}

/** The figures that people ask for first: of each of these parts the first row that has a ratio. */
const firstRatios = (parts: readonly ComparedPart[]) =>
  ['speed', 'accuracy', 'engine', 'build'].flatMap((name) => {
    const { of, rows } = parts.find(({ part }) => part === name) ?? { of: null, rows: [] };
    const first = rows.find(({ ratio }) => ratio !== null);
    if (first === undefined) return [];
    return {
      what: `${of === null ? '' : `${of}: `}${first.what}`,
      ratio: `${formatStatistic(first.ratio)}×`,
    };
  });

function headlineOf({ pairs, decision }: RunComparison): string {
  const ratios = pairs.flatMap(({ parts }, at) => {
    const found = firstRatios(parts).map(({ what, ratio }) => `${what} ${ratio}`);
    return found.length === 0 ? [] : [`${letterOf(at)} over ${letterOf(pairs.length)}: ${found.join(', ')}.`];
  });
  const front = decision && frontSentence(decision);
  const sentences = [
    ...(front === null ? [] : [front]),
    ...(pairs.length > 1 && front !== null ? [] : ratios),
  ];
  return sentences.length === 0 ? 'No figures can be compared.' : sentences.join(' ');
}

const lettersOf = (all: readonly unknown[]): readonly string[] => all.map((_, at) => letterOf(at));

function runsSection({ runs }: RunComparison): Section {
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
  const last = letterOf(runs.length - 1);
  return {
    id: 'runs',
    title: 'What is compared',
    lead: `Ratios are figures over those of ${last}, as in bench compare: of times, above 1 means slower than ${last}.`,
    blocks: [
      table(
        'The results',
        ['', ...lettersOf(runs)],
        rows.flatMap(([name, of]) => {
          const texts = runs.map(of);
          return texts.every((text) => text === null) ? [] : [[name, ...texts.map((text) => text ?? '–')]];
        }),
      ),
    ],
  };
}

/** Every field that differs in a pair, with its value in each run. */
function differencesSection(
  id: string,
  title: string,
  pairs: readonly (ComparedPair['environment'] | null)[],
  equal: string | null = null,
): Section | null {
  if (equal !== null) return { id, title, lead: equal, blocks: [] };
  const fields = [...new Set(pairs.flatMap((differences) => differences ?? []).map(({ field }) => field))];
  if (fields.length === 0) return null;
  return {
    id,
    title,
    lead: `${formatCount(fields.length)} ${fields.length === 1 ? 'field differs' : 'fields differ'}.`,
    blocks: [
      table(
        'Fields that differ',
        ['field', ...lettersOf([...pairs, null])],
        fields.map((field) => {
          const found = pairs.map((differences) => differences?.find((each) => each.field === field));
          const last = found.find((each) => each !== undefined)?.b;
          // A run without a difference has the value of the last, unless nothing is known of it.
          const values = found.map((each, at) => (each ? each.a : pairs[at] === null ? undefined : last));
          return [code(field), ...[...values, last].map(valueText)];
        }),
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

function partSection(merged: MergedPart, index: number, { runs }: RunComparison): Section {
  const { part, of } = merged;
  const title = titleOf(merged);
  const notComparable = reasons(merged, 'notComparable');
  const [doubts, warnings] = [reasons(merged, 'doubts'), reasons(merged, 'warnings')];
  const isComparable = notComparable.length === 0;
  const last = runs.length - 1;
  const letters = lettersOf(runs);
  const rows = rowsOf(merged, runs.length);
  return {
    id: of === null ? part : `${part}-${index + 1}`,
    title,
    lead: isComparable
      ? doubts.length > 0
        ? 'A measurement is unreliable, so its ratios are too.'
        : 'The figures can be compared.'
      : 'Not all figures can be compared: those that cannot have no ratios.',
    blocks: [
      labelled('not comparable', 'bad', notComparable),
      labelled('unreliable', 'warn', doubts),
      labelled('warning', 'warn', warnings),
      table(
        `${title}, of all`,
        [
          'figure',
          ...numbers(...letters, ...letters.slice(0, last).map((letter) => `${letter} / ${letters[last]}`)),
        ],
        rows.map(({ what, unit, amounts, ratios }) => [
          what,
          ...amounts.map((amount) => amountText(unit, amount)),
          ...ratios.map((ratio) => (ratio === null ? '–' : `${formatStatistic(ratio)}×`)),
        ]),
      ),
      part === 'engine' ? sizesChart(rows) : null,
      ...(part === 'speed' && isComparable ? speedBlocks(rows, runs) : []),
    ],
  };
}

/** The rows of all pairs, with a figure of each run and its ratio. */
function rowsOf({ sides }: MergedPart, count: number) {
  const found = sides.flatMap(({ part }) => part.rows);
  return [...new Set(found.map(({ what }) => what))].map((what) => {
    const of = Array.from({ length: count - 1 }, (_, at) =>
      sides.find((side) => side.at === at)?.part.rows.find((row) => row.what === what),
    );
    const last = of.find((row) => row !== undefined);
    return {
      what,
      unit: last!.unit,
      amounts: [...of.map((row) => row?.a ?? null), last!.b],
      ratios: of.map((row) => row?.ratio ?? null),
    };
  });
}

/** The plans, each with what it is made of where that is known; null for results that state no plans. */
function sizesChart(rows: ReturnType<typeof rowsOf>) {
  const amounts = (name: string, at: number) => rows.find(({ what }) => what === name)?.amounts[at] ?? null;
  const sizes = rows.find(({ what }) => what === PLAN_SIZE)?.amounts ?? [];
  const bars = sizes.flatMap((size, at): Bar[] => {
    const [weightsBytes, kernelsBytes, programBytes] = Object.values(PLAN_ROWS).map((name) =>
      amounts(name, at),
    );
    if (size === null) return [];
    const name = formatBytes(Number(size));
    const bar = { label: letterOf(at), amount: Number(size), tone: 'quiet' as const, name };
    if (weightsBytes == null || kernelsBytes == null || programBytes == null)
      return [{ ...bar, text: `${name}, contents not known` }];
    const contents = { weightsBytes, kernelsBytes, programBytes };
    return [{ ...bar, text: name, parts: planParts(contents) }];
  });
  return bars.length === 0
    ? null
    : charts({ chart: barChart('What the plans hold', bars), caption: PLAN_COLOURS });
}

function speedBlocks(rows: ReturnType<typeof rowsOf>, runs: readonly ComparedSide[]) {
  const drawn = MEDIANS.find((median) => rows.some(({ what }) => what.startsWith(median))) ?? MEDIANS[0];
  const bars = rows
    .filter(({ what }) => what.startsWith(drawn))
    .flatMap(({ what, amounts }) =>
      amounts.flatMap((amount, at) =>
        amount === null
          ? []
          : {
              label: `${letterOf(at)}${what.slice(drawn.length)}`,
              amount: Number(amount),
              text: formatMs(Number(amount)),
              tone: at < runs.length - 1 ? ('accent' as const) : ('quiet' as const),
            },
      ),
    );
  const engines = runs.flatMap(({ engine }) => engine ?? []);
  return present([
    bars.length === 0
      ? null
      : charts({ chart: barChart(`All: ${drawn}`, bars), caption: 'Shorter is faster.' }),
    ...(engines.length !== 2 || runs.length !== 2
      ? []
      : [
          note(
            'The two were measured at different times. This command measures both engines in turns, with a confidence interval:',
          ),
          command(shellLine(['trtforge', 'bench', 'compare', ...engines])),
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
