import { formatMs } from '../../base/text/quantity.js';
import { type Span, timelineChart } from '../chart/timeline.js';
import { type Markup, markup } from '../markup.js';
import { badge, figure, type SectionFacts, table } from '../parts.js';
import type { ReportPhase } from '../result.js';
import { phasesSentence, type TimedPhases } from '../sentences.js';

const tones = { done: 'accent', failed: 'bad', skipped: 'quiet', 'not-reached': 'quiet' } as const;
const badges = { done: 'good', failed: 'bad', skipped: 'warn', 'not-reached': 'quiet' } as const;

/** Parts of a phase shorter than this share of the run would be slivers under a label. */
const SHORTEST_STEP = 0.02;

/** The run on a time line, and every phase with what came of it or why it did not run. */
export function phasesSection(result: TimedPhases): SectionFacts | null {
  return {
    id: 'phases',
    title: 'The run',
    lead: phasesSentence(result),
    body: [
      figure(timeline(result), 'The phases of the run on one axis of time.'),
      table(
        'Every phase',
        [
          { title: 'phase' },
          { title: 'status' },
          { title: 'took', numeric: true },
          { title: 'what came of it' },
        ],
        result.phases.map((phase) => [
          phase.name,
          badge(phase.status.replace('-', ' '), badges[phase.status]),
          phase.ms === null ? '–' : formatMs(phase.ms),
          phase.detail,
        ]),
      ),
    ],
  };
}

function timeline(result: TimedPhases): Markup {
  const spans = result.phases.flatMap((phase) => [...phaseSpan(phase), ...stepSpans(phase, result.totalMs)]);
  if (spans.length === 0) return markup`<p class="muted">No phase was started.</p>`;
  return timelineChart(
    {
      id: 'timeline',
      title: 'Time line of the run',
      description: spans.map((span) => `${span.label}: ${span.text}`).join('; '),
    },
    spans,
  );
}

function phaseSpan(phase: ReportPhase): readonly Span[] {
  if (phase.startMs === null || phase.ms === null) return [];
  return [
    {
      label: phase.name,
      text: formatMs(phase.ms),
      startMs: phase.startMs,
      endMs: phase.startMs + phase.ms,
      tone: tones[phase.status],
      inner: false,
    },
  ];
}

function stepSpans(phase: ReportPhase, totalMs: number): readonly Span[] {
  return phase.steps
    .filter((step) => step.name !== phase.name && step.ms >= totalMs * SHORTEST_STEP)
    .map((step) => ({
      label: step.name,
      text: formatMs(step.ms),
      startMs: step.startMs,
      endMs: step.startMs + step.ms,
      tone: 'quiet' as const,
      inner: true,
    }));
}
