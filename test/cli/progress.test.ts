import { describe, expect, test, vi } from 'vitest';
import { createProgress } from '../../src/cli/program/progress.js';
import type { WorkEvent } from '../../src/events.js';
import { recordedConsole } from '../fakes/console.js';

const build: readonly WorkEvent[] = [
  { type: 'phase-start', phase: 'build', detail: 'resnet50' },
  { type: 'progress', phase: 'build', done: 1, total: 4, detail: 'tactics' },
  { type: 'log', source: 'tensorrt', severity: 'verbose', message: 'a detail' },
  { type: 'log', source: 'tensorrt', severity: 'warning', message: 'careful' },
  { type: 'phase-end', phase: 'build', ms: 1234 },
  { type: 'phase-skipped', phase: 'bench', reason: 'no NVIDIA driver' },
];

function shown(style: Partial<Parameters<typeof createProgress>[1]>, terminal = false): string {
  const recorded = recordedConsole({ NO_COLOR: '1' }, terminal);
  const progress = createProgress(recorded.console, {
    events: false,
    quiet: false,
    verbose: false,
    ...style,
  });
  build.forEach(progress.listen);
  progress.end();
  return recorded.err();
}

describe('progress on stderr', () => {
  test('off a terminal it is one plain line for each step', () => {
    expect(shown({})).toBe(
      ['  tensorrt warning careful', '✓ build 1.23 s resnet50', '– bench skipped: no NVIDIA driver'].join(
        '\n',
      ),
    );
  });

  test('--verbose shows the verbose lines, --quiet nothing', () => {
    expect(shown({ verbose: true })).toContain('a detail');
    expect(shown({ quiet: true })).toBe('');
  });

  test('Ctrl-C is answered at once, also as an event, and not with --quiet', () => {
    const answer = (style: { readonly events: boolean; readonly quiet: boolean }) => {
      const recorded = recordedConsole({ NO_COLOR: '1' }, false);
      createProgress(recorded.console, { verbose: false, ...style }).cancelling();
      return recorded.err();
    };
    expect(answer({ events: false, quiet: false })).toBe('cancelling …');
    expect(JSON.parse(answer({ events: true, quiet: false }))).toMatchObject({ message: 'cancelling' });
    expect(answer({ events: false, quiet: true })).toBe('');
  });

  test('--events prints each event as a JSON line with a time', () => {
    const lines = shown({ events: true })
      .split('\n')
      .map((line) => JSON.parse(line) as WorkEvent & { time: string });
    expect(lines.map(({ time, ...event }) => ({ event, dated: !Number.isNaN(Date.parse(time)) }))).toEqual(
      build.map((event) => ({ event, dated: true })),
    );
  });

  test('on a terminal a live line shows the phase and is gone at the end', () => {
    const text = shown({}, true);
    expect(text).toMatch(/build [\d.]+ [µm]s resnet50/);
    expect(text.lastIndexOf('\x1b[2K')).toBeGreaterThan(text.lastIndexOf(' resnet50'));
  });

  const nested: readonly WorkEvent[] = [
    { type: 'phase-start', phase: 'build' },
    { type: 'phase-start', phase: 'lookup' },
    { type: 'phase-end', phase: 'lookup', ms: 2 },
    { type: 'phase-skipped', phase: 'upload', reason: 'no remote store' },
    { type: 'phase-end', phase: 'build', ms: 3000 },
  ];
  const linesOf = (events: readonly WorkEvent[], terminal: boolean) => {
    const recorded = recordedConsole({ NO_COLOR: '1' }, terminal);
    const progress = createProgress(recorded.console, { events: false, quiet: false, verbose: false });
    events.forEach(progress.listen);
    progress.end();
    return recorded
      .err()
      .split('\n')
      .filter((line) => /^ *[✓–✗]/u.test(line));
  };

  test('a phase has its parts below it on a terminal, and elsewhere each line comes as it ends', () => {
    const [lookup, upload] = ['  ✓ lookup 2.0 ms', '  – upload skipped: no remote store'];
    expect(linesOf(nested, true)).toEqual(['✓ build 3.00 s', lookup, upload]);
    expect(linesOf(nested, false)).toEqual([lookup, upload, '✓ build 3.00 s']);
  });

  test.each([true, false])('a phase that began and ends as skipped is over (terminal: %s)', (terminal) => {
    const [start] = nested;
    const events: readonly WorkEvent[] = [
      start!,
      { type: 'phase-start', phase: 'known answer' },
      { type: 'phase-skipped', phase: 'known answer', reason: 'it takes too long' },
      { type: 'phase-end', phase: 'build', ms: 3000 },
    ];
    const lines = linesOf(events, terminal);
    expect(lines.toSorted()).toEqual(['  – known answer skipped: it takes too long', '✓ build 3.00 s']);
  });

  test('components side by side keep their own parts', () => {
    const of = (component: string) =>
      nested.map((event) =>
        'phase' in event ? { ...event, phase: `${component}: ${event.phase}` } : event,
      ) as readonly WorkEvent[];
    const [one, other] = [of('encoder'), of('joint')];
    const mixed = one.flatMap((event, index) => [event, other[index]!]);
    expect(linesOf(mixed, true)).toEqual(
      ['encoder', 'joint'].flatMap((name) => [
        `✓ ${name}: build 3.00 s`,
        `  ✓ ${name}: lookup 2.0 ms`,
        `  – ${name}: upload skipped: no remote store`,
      ]),
    );
  });

  test.each([
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ])(
    'what an error ended does not hold what follows (terminal: %s, inner phase: %s)',
    (terminal, lookupEnds) => {
      const [start, inner] = nested;
      const events: readonly WorkEvent[] = [
        start!,
        inner!,
        ...(lookupEnds ? [{ type: 'phase-failed', phase: 'lookup', ms: 2 } as const] : []),
        { type: 'phase-failed', phase: 'build', ms: 3 },
        ...nested,
      ];
      const lines = linesOf(events, terminal);
      expect(lines.filter((line) => line.includes('✗')).toSorted()).toEqual(['  ✗ lookup', '✗ build']);
      expect(lines.slice(2)).toEqual(linesOf(nested, terminal));
    },
  );

  test.each([true, false])('what an error ended is marked (terminal: %s)', (terminal) => {
    expect(linesOf(nested.slice(0, -1), terminal)).toContain('✗ build');
  });

  test('without a terminal a slow phase is announced', () => {
    vi.useFakeTimers();
    const recorded = recordedConsole({}, false);
    const progress = createProgress(recorded.console, { events: false, quiet: false, verbose: false });
    progress.listen({ type: 'phase-start', phase: 'build', detail: 'resnet50' });
    vi.advanceTimersByTime(9_000);
    expect(recorded.err()).toBe('');
    vi.advanceTimersByTime(2_000);
    expect(recorded.err()).toBe('build … resnet50');
    progress.end();
    vi.useRealTimers();
  });
});
