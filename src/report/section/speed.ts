import { formatBytes, formatCount, formatMs } from '../../base/text/quantity.js';
import type { BenchRun } from '../../quality/bench/result.js';
import type { ForgeResult } from '../result.js';
import { badge, code, labelled, numbers, type Section, table } from '../section.js';
import { speedSentence } from '../sentences.js';

/** How fast the engine is on the GPU it was measured on, how that was measured, and what makes the measurement unreliable. */
export function speedSection({ bench }: ForgeResult): Section | null {
  if (bench === null) return null;
  const { gpu, subject, warnings } = bench;
  const sizes: readonly (readonly [string, number | null])[] = [
    ['plan', subject.bytes],
    ['activations of one context', subject.contextBytes],
    ['GPU memory that loading took', subject.loadedBytes],
  ];
  return {
    id: 'speed',
    title: 'Speed',
    lead: speedSentence(bench),
    blocks: [
      table(
        `GPU compute time on ${gpu?.name ?? bench.backend}, and how it was measured`,
        ['shapes', ...numbers('median', 'p99', 'max', 'items/s', 'samples'), 'mode', 'measurement'],
        bench.runs.map((run) => [
          code(run.shapes.map(({ name, shape }) => `${name} ${shape.join('×')}`).join(', ')),
          ...(['median', 'p99', 'max'] as const).map((name) =>
            run.gpuMs === null ? '–' : formatMs(run.gpuMs[name]),
          ),
          formatCount(Math.round(run.itemsPerSecond)),
          formatCount(run.gpuMs?.count ?? 0),
          modeOf(run),
          run.doubts.length === 0 ? badge('steady', 'good') : badge('unreliable', 'warn'),
        ]),
      ),
      table(
        'What the engine takes',
        ['what', ...numbers('size')],
        sizes.map(([what, bytes]) => [what, bytes === null ? '–' : formatBytes(bytes)]),
      ),
      labelled('warning', 'warn', warnings),
    ],
  };
}

function modeOf({ mode }: BenchRun): string {
  const transfers = mode.kind === 'with-transfers' ? 'with transfers' : 'GPU only';
  const graph = mode.graph === true ? 'CUDA graph' : 'no CUDA graph';
  return `${transfers}, ${graph}, ${mode.spinWait === true ? 'spin wait' : 'blocking wait'}`;
}
