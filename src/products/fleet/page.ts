import { formatBytes, formatMs, plural } from '../../base/text/quantity.js';
import { defineReport } from '../../report/pages/kind.js';
import { badge, code, facts, lines, list, type Section, type Text, table } from '../../report/section.js';
import { outcomeWord } from '../../report/sentences.js';
import { type FleetStatus, fleetStatusSchema } from './plan-schema.js';

type JobStatus = FleetStatus['jobs'][number];

const tones = {
  have: 'good',
  running: 'accent',
  queued: 'quiet',
  undecided: 'warn',
  refused: 'bad',
  failed: 'bad',
  missing: 'warn',
} as const;

/** Models by targets: what a fleet has, what it lacks and why. */
export const fleetReport = defineReport<FleetStatus>({
  source: 'fleet status',
  file: 'fleet.json',
  result: fleetStatusSchema,
  page: (status) => {
    const { jobs, outcome, address, at, version } = status;
    const count = (state: JobStatus['state']) => jobs.filter((job) => job.state === state).length;
    return {
      name: 'Fleet',
      subtitle: address,
      kind: 'fleet',
      version,
      startedAt: at,
      verdict: {
        outcome,
        word: outcomeWord[outcome],
        headline: `${count('have')} of ${plural(jobs.length, 'engine')} are there.`,
        reasons: jobs.flatMap(({ name, state, why }) =>
          state === 'refused' || state === 'failed' ? [`${name}: ${why[0] ?? state}`] : [],
        ),
        remedies: [],
      },
      figures: Object.keys(tones)
        .map((state) => ({ text: String(count(state as JobStatus['state'])), name: state }))
        .filter(({ text }) => text !== '0'),
      sections: [matrix(status), details(status), asked(status)],
    };
  },
});

function matrix({ jobs }: FleetStatus): Section {
  const targets = [...new Set(jobs.map(({ on }) => on))];
  const rows = new Map<string, readonly JobStatus[]>();
  for (const job of jobs) {
    const key = `${job.model}\n${job.precision}`;
    rows.set(key, [...(rows.get(key) ?? []), job]);
  }
  return {
    id: 'engines',
    title: 'Models by targets',
    lead: `${plural(rows.size, 'model')}, ${plural(targets.length, 'target')}.`,
    blocks: [
      table(
        'Every engine',
        ['model', 'precision', ...targets],
        [...rows.values()].map((row) => [
          code(row[0]!.model),
          row[0]!.precision,
          ...targets.map((on) => lines(row.filter((job) => job.on === on).flatMap(cell))),
        ]),
      ),
    ],
  };
}

function cell({ state, bytes, buildMs, check, gate }: JobStatus): readonly Text[] {
  const size = bytes === null ? [] : [formatBytes(bytes)];
  const time = buildMs === null ? [] : [`built in ${formatMs(buildMs)}`];
  const verdicts = [check && `known answer: ${check}`, gate && `policy: ${gate}`].flatMap(
    (text) => text || [],
  );
  return [badge(state, tones[state]), ...size, ...time, ...verdicts];
}

const details = ({ jobs }: FleetStatus): Section | null => {
  const open = jobs.filter(({ state }) => state !== 'have');
  if (open.length === 0) return null;
  return {
    id: 'why',
    title: 'What is not there, and why',
    lead: `${plural(open.length, 'engine')}.`,
    blocks: [
      list(
        open.map(({ name, on, state, why, node }) => ({
          label: { text: state, tone: tones[state] },
          text: [code(name), ` on ${on}${node === null ? '' : `, ${node}`}: ${why.join(' ')}`],
        })),
      ),
    ],
  };
};

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
