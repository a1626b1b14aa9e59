import { formatBytes, formatShare } from '../../base/text/quantity.js';
import {
  type BenchComparison,
  type BenchResult,
  type BenchRun,
  type ColdStarts,
  type ComparedSide,
  coldPhaseName,
  coldPhases,
  type GpuState,
  type LayerTimes,
} from '../../quality/bench/result.js';
import { percentilesOf, type Spread } from '../../quality/bench/times.js';
import { modeText } from '../../report/sentences.js';
import type { TextOutput } from '../command.js';
import { operatorLines } from '../text.js';

const TOP_LAYERS = 20;
/** Titles of the columns of a spread with their amounts: 90, 95 and 99 %, and the percentiles that were requested, in order. */
const columnsOf = (spread: Spread): readonly (readonly [string, number])[] => {
  const { min, mean, median, max } = spread;
  return [...Object.entries({ min, mean, median }), ...percentilesOf(spread), ['max', max]];
};

/** Milliseconds or ratios with what a column has room for: 0.0005, 0.5244, 12.34, 1234.6. */
const exact = (value: number): string =>
  value < 1 ? value.toFixed(4) : value < 1000 ? value.toPrecision(5) : value.toFixed(1);
const rate = (value: number): string => (value >= 1000 ? value.toFixed(0) : value.toPrecision(4));

export function renderBench(result: BenchResult, output: TextOutput): void {
  const { bold, dim } = output.colors;
  const { subject, backend, gpu, runs, valleys, layers, cold, warnings } = result;
  output.line(`${bold(subject.path)}  ${dim(`${backend}${gpu === null ? '' : ` on ${gpu.name}`}`)}`);
  output.line(dim(`${formatBytes(subject.bytes)}${memoryOf(result)}`));
  for (const run of runs) renderRun(run, output);
  if (valleys.length > 0) output.line();
  for (const { message } of valleys) output.line(`${output.colors.yellow('valley')} ${message}`);
  if (layers !== null) renderLayers(layers, output);
  if (cold !== undefined) renderCold(cold, subject.bytes, output);
  renderWarnings(warnings, output);
}

const memoryOf = ({ subject }: BenchResult): string => {
  const { contextBytes, loadedBytes } = subject;
  return [
    ...(loadedBytes === null ? [] : [`, ${formatBytes(loadedBytes)} of GPU memory loaded`]),
    ...(contextBytes === null ? [] : [`, ${formatBytes(contextBytes)} per context`]),
    weightsText(subject),
  ].join('');
};

/** trtexec states what may stay on the GPU and not how much there is; its 10.0 not even that where the library chooses. */
function weightsText({
  streamableWeightsBytes: all,
  weightBudgetBytes: kept,
  weightBudgetAsked: asked,
}: BenchResult['subject']): string {
  if (kept === undefined) return asked === undefined ? '' : `, budget of streamed weights ${asked}`;
  const share =
    all === undefined ? `at most ${formatBytes(kept)}` : `${formatBytes(kept)} of ${formatBytes(all)}`;
  return `, ${share} of weights kept on the GPU`;
}

function renderRun(run: BenchRun, output: TextOutput): void {
  const { bold, dim } = output.colors;
  const shapes = run.shapes.map(({ name, shape }) => `${name}:${shape.join('x') || 'scalar'}`).join(' ');
  output.line();
  output.line(`${bold(`batch ${run.batch}`)}  ${shapes}  ${dim(modeText(run.mode))}`);
  const rows: readonly (readonly [string, Spread | null])[] = [
    ['GPU compute', run.gpuMs],
    ['end to end', run.endToEndMs],
    ['input copy', run.inputMs],
    ['output copy', run.outputMs],
    ['enqueue', run.enqueueMs],
  ];
  const [first] = rows.flatMap(([, spread]) => spread ?? []);
  const titles = first === undefined ? [] : columnsOf(first).map(([name]) => name.padStart(9));
  output.line(dim(`  ${'ms'.padEnd(12)}${titles.join('')}`));
  for (const [name, spread] of rows) if (spread !== null) output.line(spreadLine(name, spread));
  output.line(
    `  ${bold(`${rate(run.qps)} qps`)}, ${bold(`${rate(run.itemsPerSecond)} items/s`)}${variation(run)}`,
  );
  if (run.peakGpuBytes !== null)
    output.line(dim(`  ${formatBytes(run.peakGpuBytes)} of GPU memory in use at most`));
  const states = [...run.gpuStates.during, ...(run.gpuStates.after === null ? [] : [run.gpuStates.after])];
  const hottest = states.reduce<GpuState | undefined>(
    (most, state) => ((state.temperatureC ?? 0) >= (most?.temperatureC ?? 0) ? state : most),
    undefined,
  );
  if (hottest !== undefined) output.line(dim(`  ${stateText(hottest)}`));
  if (run.samples !== null) output.line(`  samples in ${run.samples}`);
}

const spreadLine = (name: string, spread: Spread): string =>
  `  ${name.padEnd(12)}${columnsOf(spread)
    .map(([, amount]) => exact(amount).padStart(9))
    .join('')}`;

function variation({ gpuMs, endToEndMs }: BenchRun): string {
  const spread = gpuMs ?? endToEndMs;
  if (spread === null) return '';
  const { count, coefficientOfVariation: share } = spread;
  return ` over ${count} samples${share === null ? '' : `, varying by ${formatShare(share)}`}`;
}

const stateText = ({ smClockMHz, temperatureC, powerW, throttleReasons }: GpuState): string =>
  [
    ...(smClockMHz === null ? [] : [`SM ${smClockMHz} MHz`]),
    ...(temperatureC === null ? [] : [`${temperatureC} °C`]),
    ...(powerW === null ? [] : [`${Math.round(powerW)} W`]),
    ...(throttleReasons ?? []),
  ].join(', ');

function renderLayers({ layers, totalMs, runs }: LayerTimes, output: TextOutput): void {
  const { bold, dim } = output.colors;
  output.line();
  output.line(
    `${bold(`${layers.length} layers`)}, ${exact(totalMs)} ms together, over ${runs} profiled runs`,
  );
  const top = layers.toSorted((a, b) => b.ms - a.ms).slice(0, TOP_LAYERS);
  for (const { name, ms, share, type, precision, onnxNodes } of top) {
    const what = [type, precision].filter((word) => word !== null).join(' ');
    output.line(`  ${exact(ms).padStart(9)} ms  ${formatShare(share).padStart(7)}  ${name}  ${dim(what)}`);
    if (onnxNodes.length > 0) output.line(dim(`${' '.repeat(24)}${nodesText(onnxNodes)}`));
  }
  if (layers.length > top.length) output.line(dim(`  and ${layers.length - top.length} more`));
}

function renderCold({ starts, warm, dropped }: ColdStarts, planBytes: number, output: TextOutput): void {
  const { bold, dim } = output.colors;
  const row = (title: string, columns: readonly string[]) =>
    `  ${title.padEnd(12)}${columns.map((text) => text.padEnd(32)).join('')}`.trimEnd();
  output.line();
  output.line(`${bold('cold start')}  ${starts} new processes each, median and range`);
  output.line(dim(row('ms', ['page cache as it is', 'dropped'])));
  for (const phase of coldPhases) {
    const columns = [warm.ms[phase], dropped.ms[phase]].flatMap((spread) =>
      spread === null
        ? []
        : `${exact(spread.median).padStart(8)}  ${exact(spread.min)} – ${exact(spread.max)}`,
    );
    if (columns.length === 2) output.line(row(coldPhaseName(phase), columns));
  }
  const { peakBytes, anonymousBytes, mappedBytes } = dropped.hostMemory;
  const parts = `in the end ${formatBytes(anonymousBytes)} of its own and ${formatBytes(mappedBytes)} of files`;
  const most = `deserializing ${formatBytes(planBytes)} takes up to ${formatBytes(peakBytes)} of host memory`;
  output.line(dim(`  ${most}, ${parts}`));
}

const nodesText = (nodes: readonly string[]): string =>
  nodes.length <= 4 ? nodes.join(', ') : `${nodes.slice(0, 4).join(', ')} and ${nodes.length - 4} more`;

export function renderComparison(result: BenchComparison, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  for (const side of [result.candidate, result.reference]) renderSide(side, result.batch, output);
  output.line();
  for (const [name, ratio] of Object.entries(result.ratios)) {
    if (ratio === null) continue;
    const line = `${name.padEnd(20)}${exact(ratio.ratio)}  ${dim(`95 % between ${exact(ratio.low)} and ${exact(ratio.high)}`)}`;
    output.line(`  ${name === result.metric ? bold(line) : line}`);
  }
  const colored = { faster: green, slower: red, equal: green, inconclusive: yellow }[result.verdict];
  output.line(`${colored(result.verdict)}  ${dim(`by ${result.metric}, ${result.rounds} rounds in turns`)}`);
  if (result.layers != null) {
    output.line();
    for (const line of operatorLines(result.layers.operators)) output.line(line);
    output.line();
  }
  if (result.gate !== null) {
    const color = { pass: green, fail: red, inconclusive: yellow }[result.gate.outcome];
    output.line(`${color(result.gate.outcome)}  ${result.gate.reason}`);
  }
  renderWarnings(result.warnings, output);
}

function renderSide(side: ComparedSide, batch: number, output: TextOutput): void {
  const { bold, dim } = output.colors;
  output.line(
    `${bold(side.subject.path)}  ${dim(`${side.backend}, batch ${batch}, ${modeText(side.mode)}`)}`,
  );
  if (side.gpuMs !== null) output.line(spreadLine('GPU compute', side.gpuMs));
  if (side.endToEndMs !== null) output.line(spreadLine('end to end', side.endToEndMs));
  output.line(`  ${rate(side.qps)} qps, ${rate(side.itemsPerSecond)} items/s`);
}

function renderWarnings(warnings: readonly string[], output: TextOutput): void {
  if (warnings.length === 0) return;
  output.line();
  for (const warning of warnings) output.line(`${output.colors.yellow('warning')} ${warning}`);
}
