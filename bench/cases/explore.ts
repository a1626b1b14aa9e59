import { existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import {
  type BenchCase,
  type BenchContext,
  NO_OTHER_CLONE,
  OTHER_CLONE,
  ofOtherClone,
  trtforge,
} from '../context.js';
import { measureCommand, median } from '../measure.js';
import type { Measurement } from '../result.js';

const LAYERS = 5000;
/** Lines that pass with each frame: a fast wheel. */
const LINES = 4;
const LINE_PIXELS = 26;
const FRAMES = 180;

/** What the page of an engine of 5,000 layers costs its reader, in Chromium without a GPU. */
export const explore: BenchCase = {
  name: 'explore',
  run: async (context) => {
    const title = `A page of ${LAYERS} layers, opened and scrolled`;
    const skipped = (why: string) => ({
      case: 'explore',
      title,
      commands: [],
      measurements: [],
      skipped: [why],
    });
    const executablePath = process.env.CHROMIUM ?? onPath('chromium', 'chromium-browser', 'google-chrome');
    if (executablePath === undefined) return skipped('no Chromium on the PATH; CHROMIUM may name one');
    const pages = writePages(context);
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
    try {
      const costs = pages.map((): PageCost[] => []);
      for (let run = -1; run < context.runs; run++)
        for (const [which, page] of pages.entries()) {
          const cost = await costOf(browser, page);
          if (run >= 0) costs[which]!.push(cost);
        }
      const figure = (what: string, of: keyof PageCost, limit: number): Measurement => {
        const [ours, theirs] = costs.map((each) => median(each.map((cost) => cost[of])));
        const peer = theirs === undefined ? {} : { peer: { name: OTHER_CLONE, figure: theirs } };
        return { what, unit: 's', ours: ours!, ...peer, bar: { limit, better: 'lower' } };
      };
      return {
        case: 'explore',
        title,
        commands: [
          'trtforge explore layers.json -o page.html',
          'the same of the clone that BENCH_BASE names',
        ],
        measurements: [
          figure('to the first frame with layers, processor time of its thread', 'firstFrame', 0.1),
          figure(`a frame that scrolls ${LINES} layers, processor time of its thread`, 'frame', 1 / 60),
          figure('from frame to frame while it scrolls, median', 'betweenFrames', 0.0168),
        ],
        skipped: pages.length === 1 ? [NO_OTHER_CLONE] : [],
      };
    } finally {
      await browser.close();
    }
  },
};

/** Seconds. */
interface PageCost {
  readonly firstFrame: number;
  readonly frame: number;
  readonly betweenFrames: number;
}

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** µs, as are all. */
  readonly ts: number;
  readonly dur?: number;
  readonly tdur?: number;
}

async function costOf(browser: Browser, file: string): Promise<PageCost> {
  const browsing = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await browsing.newPage();
  const traced = async (act: () => Promise<unknown>): Promise<readonly TraceEvent[]> => {
    await browser.startTracing(page, { categories: ['devtools.timeline', 'toplevel'] });
    await act();
    return (JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] })
      .traceEvents;
  };
  const opened = await traced(async () => {
    await page.goto(pathToFileURL(file).href);
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
  });
  const script = opened.findLast(({ name }) => name === 'EvaluateScript')!;
  const ofThread = ({ pid, tid }: TraceEvent) => pid === script.pid && tid === script.tid;
  const tasksOf = (events: readonly TraceEvent[]) =>
    events.filter((event) => ofThread(event) && event.ph === 'X' && event.name.endsWith('RunTask'));
  const seconds = (tasks: readonly TraceEvent[]) => tasks.reduce((sum, { tdur = 0 }) => sum + tdur, 0) / 1e6;
  const paints = opened.filter((event) => ofThread(event) && event.name === 'Paint' && event.ts > script.ts);
  const first = Math.min(...paints.map(({ ts }) => ts));
  const firstFrame = seconds(tasksOf(opened).filter(({ ts }) => ts < first));
  let between: number[] = [];
  const scrolled = await traced(async () => {
    between = await page.evaluate(`new Promise((done) => {
      const box = document.querySelector('.scroller');
      const times = [];
      const step = (time) => {
        times.push(time);
        box.scrollTop += ${LINES * LINE_PIXELS};
        if (times.length > ${FRAMES}) done(times.slice(1).map((each, at) => each - times[at]));
        else requestAnimationFrame(step);
      };
      requestAnimationFrame(step);
    })`);
  });
  await browsing.close();
  return { firstFrame, frame: seconds(tasksOf(scrolled)) / FRAMES, betweenFrames: median(between) / 1000 };
}

/** Our page, and that of the other clone where there is one. */
function writePages(context: BenchContext): string[] {
  const layers = join(context.folder, 'layers.json');
  writeFileSync(layers, madeLayers());
  return [trtforge(context), ofOtherClone()].flatMap((command, which) => {
    if (command === undefined) return [];
    const page = join(context.folder, `layers-${which}.html`);
    measureCommand([...command, 'explore', layers, '-o', page], { runs: 1, warmups: 0 });
    return [page];
  });
}

/** Layers as TensorRT 10's inspector writes them: blocks of convolutions that a residual connection ends. */
function madeLayers(): string {
  const tensor = (index: number) => ({
    Name: `t${Math.max(0, index)}`,
    Dimensions: [8, 64, 28, 28],
    'Format/Datatype': 'Channel major FP16 format where channel % 8 == 0',
  });
  const layers = Array.from({ length: LAYERS }, (_, index) => {
    const isSum = index % 6 === 5;
    const node = `/stage${Math.floor(index / 600)}/block${Math.floor(index / 6)}/${isSum ? 'Add' : `conv${index % 6}/Conv`}`;
    return {
      Name: node,
      LayerType: isSum ? 'PointWiseV2' : 'CaskConvolution',
      Inputs: isSum ? [tensor(index), tensor(index - 5)] : [tensor(index)],
      Outputs: [tensor(index + 1)],
      TacticName: `sm90_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x64x32_stage${index % 5}`,
      StreamId: 0,
      Metadata: `[ONNX Layer: ${node}]`,
    };
  });
  return JSON.stringify({ Layers: layers, Bindings: ['t0', `t${LAYERS}`] });
}

/** The first of these programs that is on the PATH. */
const onPath = (...names: readonly string[]): string | undefined =>
  names
    .flatMap((name) => (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name)))
    .find((path) => existsSync(path));
