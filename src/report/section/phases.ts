import { formatMs, formatMsTick } from '../../base/text/quantity.js';
import { across, anchorAt, type ChartText, frame, type Tone } from '../chart/frame.js';
import { linearScale } from '../chart/scale.js';
import { join, type Markup, markup } from '../markup.js';
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

/** One bar of a time line; `startMs` and `endMs` count from the start of the run. */
export interface Span {
  readonly label: string;
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly tone: Tone;
  /** Set in under the one above, drawn thinner: a part of a phase. */
  readonly inner: boolean;
}

const ROW = 40;
const INNER_ROW = 32;

/** Phases on one linear axis of time, one row each in the order given. */
export function timelineChart(text: ChartText, spans: readonly Span[]): Markup {
  const scale = linearScale(Math.max(1, ...spans.map((span) => span.endMs)), 5, formatMsTick);
  let top = 4;
  const rows = spans.map((span) => {
    const row = spanRow(span, top, scale.at);
    top += span.inner ? INNER_ROW : ROW;
    return row;
  });
  const ticks = scale.ticks.map((tick) => {
    const place = across(scale.at(tick.quantity));
    return markup`<line class="grid" x1="${place}" x2="${place}" y1="0" y2="${top}"/><text class="tick" x="${place}" y="${top + 16}" text-anchor="${anchorAt(scale.at(tick.quantity))}">${tick.label}</text>`;
  });
  return frame(text, top + 22, [join(ticks), join(rows)]);
}

function spanRow(span: Span, top: number, at: (ms: number) => number): Markup {
  const from = at(span.startMs);
  // A phase of a millisecond in a run of minutes still gets a visible sliver.
  const width = Math.max(0.004, at(span.endMs) - from);
  const labelY = top + 13;
  return markup`<text class="${span.inner ? 'tick' : 'label'}" x="0" y="${labelY}">${span.label}</text><text class="figure" x="100%" y="${labelY}" text-anchor="end">${span.text}</text><rect class="mark ${span.tone}" x="${across(Math.min(from, 1 - width))}" y="${top + 19}" width="${across(width)}" height="${span.inner ? 6 : 10}"><title>${span.label}: from ${formatMs(span.startMs)} to ${formatMs(span.endMs)}</title></rect>`;
}
