import { formatBytes, formatMs, plural } from '../../base/text/quantity.js';
import { defineReport } from '../../report/pages/kind.js';
import {
  badge,
  code,
  facts,
  heat,
  lines,
  list,
  type Section,
  type Text,
  table,
} from '../../report/section.js';
import { outcomeWord } from '../../report/sentences.js';
import { type FleetStatus, fleetStatusSchema } from './plan-schema.js';

type JobStatus = FleetStatus['jobs'][number];

/** The worst first. */
const tones = {
  failed: 'bad',
  refused: 'bad',
  undecided: 'warn',
  missing: 'warn',
  queued: 'quiet',
  running: 'accent',
  have: 'good',
} as const;
const states = Object.keys(tones) as JobStatus['state'][];

/** Reasons of the verdict; the section of reasons has all. */
const REASONS = 3;

/** Models by targets: what a fleet has, what it lacks and why. */
export const fleetReport = defineReport<FleetStatus>({
  source: 'fleet status',
  file: 'fleet.json',
  result: fleetStatusSchema,
  page: (status) => {
    const { jobs, outcome, address, at, version } = status;
    const have = jobs.filter(({ state }) => state === 'have').length;
    const bad = reasonsOf(jobs).filter(({ state }) => tones[state] === 'bad');
    const more = bad.length - REASONS;
    return {
      name: 'Fleet',
      subtitle: address,
      kind: 'fleet',
      version,
      startedAt: at,
      verdict: {
        outcome,
        word: outcomeWord[outcome],
        headline: `${have} of ${plural(jobs.length, 'engine')} are there.`,
        reasons: [
          ...bad
            .slice(0, REASONS)
            .map(({ state, why, of }) => `${plural(of.length, 'engine')} ${state}: ${why}`),
          ...(more > 0 ? [`${plural(more, 'more reason')} below.`] : []),
        ],
        remedies: [],
      },
      figures: [],
      sections: [matrix(status), whyNot(status), asked(status)],
    };
  },
});

/** What a cell of the map shows below its state, each shaded by its share of the largest on the page; known answer and policy follow where they did not pass. */
const measures: readonly {
  readonly of: (job: JobStatus, now: string) => number | null;
  readonly text: (amount: number) => string;
}[] = [
  { of: ({ bytes }) => bytes, text: formatBytes },
  { of: ({ buildMs }) => buildMs, text: formatMs },
  {
    // Clocks differ, and passports come from elsewhere.
    of: ({ builtAt }, now) => {
      const age = Date.parse(now) - Date.parse(builtAt ?? '');
      return Number.isFinite(age) ? Math.max(0, age) : null;
    },
    text: (ms) => `${plural(Math.floor(ms / 86_400_000), 'day')} old`,
  },
];

function matrix({ jobs, at }: FleetStatus): Section {
  const targets = [...new Set(jobs.map(({ on }) => on))];
  const rows = groupsBy(jobs, ({ model, precision }) => `${model}\n${precision}`);
  const counts = states.map((state) => [jobs.filter((job) => job.state === state).length, state] as const);
  const shown = measures.map(({ of, text }) => {
    const largest = Math.max(1, ...jobs.map((job) => of(job, at) ?? 0));
    return (job: JobStatus) => {
      const amount = of(job, at);
      return amount === null ? [] : [heat(text(amount), amount / largest)];
    };
  });
  const cell = (job: JobStatus): readonly Text[] => [
    badge(job.state, tones[job.state]),
    ...shown.flatMap((figure) => figure(job)),
    ...(job.check === null || job.check === 'pass' ? [] : [`answer: ${job.check}`]),
    ...(job.gate === null || job.gate === 'pass' ? [] : [`policy: ${job.gate}`]),
  ];
  return {
    id: 'engines',
    title: 'Models by targets',
    lead: `${plural(rows.length, 'model')}, ${plural(targets.length, 'target')}: ${counts
      .flatMap(([count, state]) => (count === 0 ? [] : [`${count} ${state}`]))
      .join(', ')}.`,
    blocks: [
      table(
        'State, size, build time and age of every engine; the larger, the stronger the shade',
        ['model', ...targets],
        rows.map((row) => [
          lines([code(row[0]!.model), row[0]!.precision]),
          ...targets.map((on) => lines(row.filter((job) => job.on === on).flatMap(cell))),
        ]),
        true,
      ),
    ],
  };
}

function groupsBy(jobs: readonly JobStatus[], keyOf: (job: JobStatus) => string): readonly JobStatus[][] {
  const groups = new Map<string, JobStatus[]>();
  for (const job of jobs) groups.set(keyOf(job), [...(groups.get(keyOf(job)) ?? []), job]);
  return [...groups.values()];
}

/** Engines that are not there for one reason, the worst states first, then the most engines. */
function reasonsOf(jobs: readonly JobStatus[]) {
  const whyOf = ({ why, name }: JobStatus) => (why[0] ?? 'no reason is known').replaceAll(name, 'the engine');
  const open = jobs.filter(({ state }) => state !== 'have');
  return groupsBy(open, (job) => `${job.state}\n${whyOf(job)}`)
    .map((of) => ({ state: of[0]!.state, why: whyOf(of[0]!), of }))
    .sort((a, b) => states.indexOf(a.state) - states.indexOf(b.state) || b.of.length - a.of.length);
}

function whyNot({ jobs }: FleetStatus): Section | null {
  const reasons = reasonsOf(jobs);
  if (reasons.length === 0) return null;
  return {
    id: 'why',
    title: 'What is not there, and why',
    lead: `${plural(reasons.length, 'reason')}, each with its engines.`,
    blocks: [
      list(
        reasons.map(({ state, why, of }) => ({
          label: { text: state, tone: tones[state] },
          text: `${plural(of.length, 'engine')}: ${why}`,
          items: of.map(({ name, on, node, why: [, ...rest] }) => ({
            text: [code(name), ` on ${on}${node === null ? '' : `, ${node}`}`],
            ...(rest.length === 0 ? {} : { note: rest.join(' ') }),
          })),
        })),
      ),
    ],
  };
}

const asked = ({ plan, schedulers, address }: FleetStatus): Section => ({
  id: 'plan',
  title: 'Plan',
  lead: `The plan ${plan} is the only thing that machines share, beside the store.`,
  blocks: [
    facts([
      ['plan', code(address)],
      ...schedulers.map(({ name, why }): [string, Text] => [name, why ?? 'answered']),
    ]),
  ],
});
