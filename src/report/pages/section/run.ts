import { formatMs, formatMsTick, plural } from '../../../base/text/quantity.js';
import { badge, charts, code, command, facts, note, numbers, type Section, table } from '../../blocks.js';
import { type Bar, barChart } from '../../chart/bars.js';
import type { ForgeResult, ReportPhase } from '../../forge-result.js';

export type TimedPhases = Pick<ForgeResult, 'phases' | 'totalMs'>;

const tones = { done: 'good', failed: 'bad', skipped: 'warn', 'not-reached': 'quiet' } as const;

/** Parts of a phase shorter than this share of the run would be slivers under a label. */
const SHORTEST_STEP = 0.02;

/** The run on a time line, and every phase with its result or why it did not run. */
export function phasesSection({ phases, totalMs }: TimedPhases): Section {
  const bars = phases.flatMap((phase) => barsOf(phase, totalMs));
  return {
    id: 'phases',
    title: 'The run',
    lead: phasesSentence({ phases, totalMs }),
    blocks: [
      bars.length === 0
        ? note('No phase was started.')
        : charts({
            chart: barChart('Time line of the run', bars, { tick: formatMsTick }),
            caption: 'The phases of the run on one axis of time.',
          }),
      table(
        'Every phase',
        ['phase', 'status', ...numbers('took'), 'result'],
        phases.map((phase) => [
          phase.name,
          badge(phase.status.replace('-', ' '), tones[phase.status]),
          phase.ms === null ? '–' : formatMs(phase.ms),
          phase.detail,
        ]),
      ),
    ],
  };
}

function phasesSentence({ phases, totalMs }: TimedPhases): string {
  const count = (status: ReportPhase['status']) => phases.filter((phase) => phase.status === status).length;
  const skipped = count('skipped');
  const [longest] = phases.toSorted((a, b) => (b.ms ?? 0) - (a.ms ?? 0));
  const most = longest?.ms && totalMs > 0 ? ` Most of it was ${longest.name}, ${formatMs(longest.ms)}.` : '';
  const notRun =
    skipped === 0
      ? ''
      : ` ${plural(skipped, 'step')} ${skipped === 1 ? 'was' : 'were'} skipped, with the reason below.`;
  return `${plural(count('done'), 'phase')} in ${formatMs(totalMs)}.${most}${notRun}`;
}

/** A bar of a phase, and one of each part of it that is long enough to be seen. */
function barsOf({ name, status, startMs, ms, steps }: ReportPhase, totalMs: number): readonly Bar[] {
  const bar = (label: string, from: number, took: number): Omit<Bar, 'tone'> => ({
    ...{ label, from, amount: from + took, text: formatMs(took) },
    name: `from ${formatMs(from)} to ${formatMs(from + took)}`,
  });
  return [
    ...(startMs === null || ms === null ? [] : [{ ...bar(name, startMs, ms), tone: tones[status] }]),
    ...steps
      .filter((step) => step.name !== name && step.ms >= totalMs * SHORTEST_STEP)
      .map((step) => ({ ...bar(step.name, step.startMs, step.ms), tone: 'quiet' as const, isPart: true })),
  ];
}

/** The environment of the run. */
export const environmentSection = (environment: ForgeResult['environment']): Section | null =>
  environment.length === 0
    ? null
    : {
        id: 'environment',
        title: 'Environment',
        lead: 'The machine and the versions that this result belongs to.',
        blocks: [facts(environment.map(({ name, text }) => [name, text] as const))],
      };

/** The command that repeats the run, and the files that it left in `folder`. */
export const repeatSection = (
  repeat: string | null,
  files: ForgeResult['files'] = [],
  folder = '',
): Section | null =>
  repeat === null && files.length === 0
    ? null
    : {
        id: 'repeat',
        title: 'Repeat it',
        lead: repeat === null ? 'A program called the library.' : 'The command of this run.',
        blocks: [
          repeat === null ? null : command(repeat),
          table(
            `Files of the run, in ${folder}`,
            ['file', 'what it is'],
            files.map((file) => [code(file.path), file.what]),
          ),
        ],
      };
