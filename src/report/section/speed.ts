import { formatBytes, formatCount, formatMs } from '../../base/text/quantity.js';
import type { BenchRun } from '../../quality/bench/result.js';
import { markup } from '../markup.js';
import { badge, code, type SectionFacts, table } from '../parts.js';
import type { ForgeResult } from '../result.js';
import { speedSentence } from '../sentences.js';

/** How fast the engine is on the GPU it was measured on, how that was measured, and what speaks against the figures. */
export function speedSection({ bench }: ForgeResult): SectionFacts | null {
  if (bench === null) return null;
  const { gpu, subject, warnings } = bench;
  return {
    id: 'speed',
    title: 'Speed',
    lead: speedSentence(bench),
    body: [
      table(
        `GPU compute time on ${gpu?.name ?? bench.backend}, and how it was measured`,
        [
          { title: 'shapes' },
          { title: 'median', numeric: true },
          { title: 'p99', numeric: true },
          { title: 'max', numeric: true },
          { title: 'items/s', numeric: true },
          { title: 'samples', numeric: true },
          { title: 'mode' },
          { title: 'trust' },
        ],
        bench.runs.map((run) => [
          shapesOf(run),
          ...(['median', 'p99', 'max'] as const).map((name) =>
            run.gpuMs === null ? '–' : formatMs(run.gpuMs[name]),
          ),
          formatCount(Math.round(run.itemsPerSecond)),
          formatCount(run.gpuMs?.count ?? 0),
          modeOf(run),
          run.doubts.length === 0 ? badge('steady', 'good') : badge('doubtful', 'warn'),
        ]),
      ),
      table(
        'What the engine takes',
        [{ title: 'what' }, { title: 'size', numeric: true }],
        [
          ['plan', subject.bytes],
          ['activations of one context', subject.contextBytes],
          ['GPU memory that loading took', subject.loadedBytes],
        ].map(([what, bytes]) => [String(what), typeof bytes === 'number' ? formatBytes(bytes) : '–']),
      ),
      warnings.map((warning) => markup`<p class="remedy">${warning}</p>`),
    ],
  };
}

const shapesOf = ({ shapes }: BenchRun) =>
  code(shapes.map(({ name, shape }) => `${name} ${shape.join('×')}`).join(', '));

function modeOf({ mode }: BenchRun): string {
  const transfers = mode.kind === 'with-transfers' ? 'with transfers' : 'GPU only';
  const graph = mode.graph === true ? 'CUDA graph' : 'no CUDA graph';
  return `${transfers}, ${graph}, ${mode.spinWait === true ? 'spin wait' : 'blocking wait'}`;
}
