import { formatBytes, formatMs, plural } from '../../base/text/quantity.js';
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
} from '../../report/blocks.js';
import { defineReport } from '../../report/pages/report.js';
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

/** Models by targets: what a fleet has, what it lacks and why. */
export const fleetReport = defineReport<FleetStatus>({
  source: 'fleet status',
  file: 'fleet.json',
  result: fleetStatusSchema,
  page: (status) => {
    const { jobs, outcome, address, at, version } = status;
    const reasons = reasonsOf(jobs);
    return {
      name: 'Fleet',
      subtitle: address,
      kind: 'fleet',
      version,
      startedAt: at,
      verdict: {
        outcome,
        word: outcomeWord[outcome],
        headline: `${jobs.filter(isThere).length} of ${plural(jobs.length, 'engine')} are there.`,
        // The section of reasons has all; the map is to begin on the first screen.
        reasons: reasons
          .filter(({ state }) => tones[state] === 'bad')
          .slice(0, 3)
          .map(({ state, why, of }) => `${plural(of.length, 'engine')} ${state}: ${why}`),
      },
      sections: [matrix(status), whyNot(reasons), asked(status)],
    };
  },
});

const isThere = ({ state }: JobStatus): boolean => state === 'have';

const DAY = 86_400_000;

/** By two clocks; null where the passport, which may be another's, has no date. */
function ageOf({ builtAt }: JobStatus, now: string): number | null {
  const age = Date.parse(now) - Date.parse(builtAt ?? '');
  return Number.isFinite(age) ? Math.max(0, age) : null;
}

/** Models by targets. A cell has the state, and of an engine that is there its size, the time of its build and its age, each shaded by its share of the largest. */
function matrix({ jobs, at }: FleetStatus): Section {
  const targets = [...new Set(jobs.map(({ on }) => on))];
  const rows = groupsBy(jobs, ({ model, precision }) => `${model}\n${precision}`);
  const shaded = (of: (job: JobStatus) => number | null, text: (amount: number) => string) => {
    const largest = Math.max(1, ...jobs.map((job) => of(job) ?? 0));
    return (job: JobStatus): readonly Text[] => {
      const amount = of(job);
      return amount === null ? [] : [heat(text(amount), amount / largest)];
    };
  };
  const figures = [
    shaded(({ bytes }) => bytes, formatBytes),
    shaded(({ buildMs }) => buildMs, formatMs),
    shaded(
      (job) => ageOf(job, at),
      (ms) => `${plural(Math.floor(ms / DAY), 'day')} old`,
    ),
  ];
  const cell = (job: JobStatus): readonly Text[] => [
    badge(job.state, tones[job.state]),
    ...figures.flatMap((figure) => figure(job)),
    ...(job.check === null || job.check === 'pass' ? [] : [`answer: ${job.check}`]),
    ...(job.gate === null || job.gate === 'pass' ? [] : [`policy: ${job.gate}`]),
  ];
  const counts = groupsBy(jobs, ({ state }) => state).map((of) => `${of.length} ${of[0]!.state}`);
  return {
    id: 'engines',
    title: 'Models by targets',
    lead: `${plural(rows.length, 'model')}, ${plural(targets.length, 'target')}: ${counts.join(', ')}.`,
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
  for (const job of jobs) {
    const group = groups.get(keyOf(job));
    if (group === undefined) groups.set(keyOf(job), [job]);
    else group.push(job);
  }
  return [...groups.values()];
}

/** Engines that are not there for one reason, the worst states first, then the most engines. */
function reasonsOf(jobs: readonly JobStatus[]) {
  const whyOf = ({ why, name }: JobStatus) => (why[0] ?? 'no reason is known').replaceAll(name, 'the engine');
  return groupsBy(
    jobs.filter((job) => !isThere(job)),
    (job) => `${job.state}\n${whyOf(job)}`,
  )
    .map((of) => ({ state: of[0]!.state, why: whyOf(of[0]!), of }))
    .sort((a, b) => states.indexOf(a.state) - states.indexOf(b.state) || b.of.length - a.of.length);
}

function whyNot(reasons: ReturnType<typeof reasonsOf>): Section | null {
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
