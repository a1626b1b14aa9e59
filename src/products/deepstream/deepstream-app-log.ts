import { basename, join } from 'node:path';
import { z } from 'zod';
import { LARGEST_DOCUMENT, namesIn, readText } from '../../base/files/files.js';
import { plural } from '../../base/text/quantity.js';
import { badge, code, numbers, table } from '../../report/blocks.js';
import type { RunRootSections } from '../../report/pages/report.js';

/** One run of deepstream-app, from its lines `**PERF:  30.01 (29.98)	29.99 (29.97)`: the last interval and the average since the start, a stream each. */
export interface PipelineLog {
  readonly streams: number;
  readonly run: number;
  /** Of the last intervals, over all streams. */
  readonly meanFps: number;
  /** Of the slowest stream. */
  readonly minFps: number;
  readonly totalFps: number;
  /** Whether each stream has the rate; a tenth of a frame is rounding. */
  readonly isRealTime: boolean;
}

/** As DeepStream's skill takes them: the first ones have start-up in them. */
const LAST_LINES = 10;
const RATE = 30;
const NAME = /^ds_s([1-9]\d{0,4})_run(\d{1,3})\.log$/;

/** Reads a log by name and text; null for other names, and where it has no figures. */
export function readPipelineLog(name: string, text: string): PipelineLog | null {
  const [, streams, run] = NAME.exec(name) ?? [];
  if (streams === undefined) return null;
  const all = [...text.matchAll(/^\*\*PERF:[ \t]+((?:\d+(?:\.\d+)? \(\d+(?:\.\d+)?\)[ \t\r]*)+)$/gm)]
    .slice(-LAST_LINES)
    .map(([, figures = '']) => [...figures.matchAll(/([\d.]+) \(/g)].map(([, fps]) => Number(fps)));
  const columns = all.at(-1)?.length ?? 0;
  const alike = all.filter(({ length }) => length === columns);
  if (columns === 0) return null;
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  const means = alike[0]!.map((_, stream) => sum(alike.map((line) => line[stream]!)) / alike.length);
  const totalFps = sum(means);
  const minFps = Math.min(...means);
  const isRealTime = columns >= Number(streams) && minFps >= RATE - 0.1;
  return {
    ...{ streams: Number(streams), run: Number(run), isRealTime },
    ...{ meanFps: totalFps / columns, minFps, totalFps },
  };
}

/** Where DeepStream's skill leaves its logs, below `models/NAME` or beside the engine. */
const FOLDERS = ['benchmarks/ds', 'ds', '.'];

/** The logs with figures in `models/NAME` or a run root; files are relative to it. */
export const pipelineLogs = (root: string): readonly (PipelineLog & { readonly file: string })[] =>
  FOLDERS.flatMap((folder) => namesIn(join(root, folder)).map((name) => join(folder, name))).flatMap(
    (file) => {
      const name = basename(file);
      if (!NAME.test(name)) return [];
      const log = readPipelineLog(name, readText(join(root, file), LARGEST_DOCUMENT, 'TF_FILE_UNREADABLE'));
      return log === null ? [] : [{ file, ...log }];
    },
  );

/** The folder of a sizing whose result was read from elsewhere. */
const sizingSchema = z
  .object({ root: z.string(), model: z.object({ name: z.string() }) })
  .transform(({ root, model }) => join(root, 'models', model.name));

/** The runs of deepstream-app that lie in a run root, or in the folder of the sizing. */
export const pipelineSections: RunRootSections = (runs) => {
  const found = runs.flatMap(({ root, result }) => {
    const logs = pipelineLogs(root);
    const sizing = sizingSchema.safeParse(result).data;
    return logs.length > 0 || sizing === undefined ? logs : pipelineLogs(sizing);
  });
  if (found.length === 0) return [];
  const rows = found.toSorted((a, b) => a.streams - b.streams || a.run - b.run);
  return [
    {
      id: 'deepstream',
      title: 'DeepStream',
      lead: `${plural(found.length, 'run')} of deepstream-app; the last ${LAST_LINES} intervals of each.`,
      blocks: [
        table(
          'Frames per second by number of streams',
          ['log', ...numbers('streams', 'mean per stream', 'slowest stream', 'total'), `${RATE} fps`],
          rows.map((row) => [
            code(row.file),
            String(row.streams),
            ...[row.meanFps, row.minFps, row.totalFps].map((fps) => fps.toFixed(2)),
            row.isRealTime ? badge('held', 'good') : badge('missed', 'bad'),
          ]),
        ),
      ],
    },
  ];
};
