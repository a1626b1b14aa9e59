import { formatBytes, plural } from '../../base/text/quantity.js';
import type { EngineDiff, EngineLayer, LayersResult, LayersSummary } from '../../engines/layers/result.js';
import type { TextOutput } from '../command.js';
import { table } from '../text.js';
import { renderFindings } from './facts-text.js';

/** The largest width of a column before its text is cut in the middle. */
const WIDEST = { name: 52, tactic: 44 } as const;

/** Number of changed layers that the text view lists; the JSON has all. */
const LISTED = 40;

/** The text view of an engine's layers: what it is, a line a layer, sums, what could be better. */
export function renderLayers(result: LayersResult, output: TextOutput): void {
  const { bold, dim } = output.colors;
  output.line(`${bold(result.file)}  ${dim(aboutEngine(result))}`);
  output.line();
  const rows = result.layers.map(layerRow);
  for (const line of table(['layer', 'type', 'in', 'writes', 'tactic', 'ONNX nodes'], rows))
    output.line(line);
  output.line();
  renderSummary(result.summary, output);
  renderFindings(result.findings, output);
}

function aboutEngine({ planBytes, loaded, summary, layersFrom, file }: LayersResult): string {
  const parts = [
    plural(summary.layers, 'layer'),
    ...(planBytes === null ? [] : [`plan ${formatBytes(planBytes)}`]),
    ...(loaded === null ? [] : [`activations ${formatBytes(loaded.deviceMemoryBytes)}`]),
    ...(loaded === null ? [] : [`${loaded.library} on ${loaded.gpu.name}`]),
    ...(layersFrom === file ? [] : [`layers from ${layersFrom}`]),
  ];
  return parts.join(' · ');
}

function layerRow(layer: EngineLayer): string[] {
  const { name, profile, type, precision, outputs, tactic, onnxNodes, copies } = layer;
  const shape = outputs[0]?.shape?.map((dimension) => dimension ?? '?').join('×') ?? '';
  return [
    cut(profile === 0 ? name : `${name} [profile ${profile}]`, WIDEST.name),
    type ?? '',
    precision ?? '',
    shape,
    cut(tactic.name ?? '', WIDEST.tactic),
    copies ? 'copy' : String(onnxNodes.length),
  ];
}

function renderSummary(summary: LayersSummary, output: TextOutput): void {
  const { cyan } = output.colors;
  const row = (title: string, text: string) => output.line(`${cyan(title.padEnd(12))} ${text}`);
  const counted = (groups: LayersSummary['byType']) =>
    groups.map(({ name, layers }) => `${name} ${layers}`).join(' · ');
  row('Types', counted(summary.byType));
  if (summary.byPrecision.length > 0) row('Computes in', counted(summary.byPrecision));
  row('Weights', formatBytes(summary.weightBytes));
  const open = summary.openShapes === 0 ? '' : `, and ${plural(summary.openShapes, 'layer')} of open shape`;
  row('Written', `${formatBytes(summary.outputBytes)} in one run${open}`);
  const { layers, outputBytes, ofConstants } = summary.copies;
  row('Copies', `${layers} (${ofConstants} of constants), ${formatBytes(outputBytes)} in one run`);
  row('ONNX nodes', String(summary.onnxNodes));
}

/** The text view of two engines compared. */
export function renderDiff(diff: EngineDiff, output: TextOutput): void {
  const { bold, dim, green, yellow } = output.colors;
  const { a, b } = diff;
  output.line(`${bold('A')} ${a.file}`);
  output.line(`${bold('B')} ${b.file}`);
  output.line();
  for (const line of table(['', 'A', 'B', 'B / A'], totals(a, b))) output.line(line);
  output.line();
  output.line(
    `${plural(diff.matched, 'layer')} of the same ONNX nodes: ${green(`${diff.same} alike`)}, ${yellow(`${diff.changed.length} changed`)}; ` +
      `${plural(diff.fusions.length, 'group')} fused in another way, ${diff.onlyA.length} only in A, ${diff.onlyB.length} only in B`,
  );
  for (const [what, count] of countedChanges(diff)) output.line(`  ${what.padEnd(10)} ${count} changed`);
  for (const { a: name, changes } of diff.changed.slice(0, LISTED)) {
    output.line();
    output.line(cut(name, 100));
    for (const { what, ...change } of changes) {
      const [one, other] = fromDifference(change.a, change.b);
      output.line(`  ${what.padEnd(10)} ${one} ${dim('→')} ${other}`);
    }
  }
  for (const { a: before, b: after } of diff.fusions.slice(0, LISTED)) {
    output.line();
    output.line(`${yellow('fused')} ${before.map((name) => cut(name, 60)).join(dim(' | '))}`);
    output.line(`   ${dim('→')}  ${after.map((name) => cut(name, 60)).join(dim(' | '))}`);
  }
  for (const [side, names] of [
    ['A', diff.onlyA],
    ['B', diff.onlyB],
  ] as const)
    for (const name of names.slice(0, LISTED)) output.line(`${yellow(`only ${side}`)} ${cut(name, 100)}`);
  const lists = [diff.changed, diff.fusions, diff.onlyA, diff.onlyB];
  if (lists.some(({ length }) => length > LISTED))
    output.line(dim(`Only the first ${LISTED} of each kind are listed; --json has all.`));
}

function totals(a: EngineDiff['a'], b: EngineDiff['b']): string[][] {
  const bytes = (title: string, one: number | null | undefined, other: number | null | undefined) =>
    one == null || other == null ? [] : [[title, formatBytes(one), formatBytes(other), ratio(one, other)]];
  const count = (title: string, one: number, other: number) => [
    [title, String(one), String(other), ratio(one, other)],
  ];
  const precisions = new Set([...a.summary.byPrecision, ...b.summary.byPrecision].map(({ name }) => name));
  const layersIn = ({ byPrecision }: LayersSummary, precision: string) =>
    byPrecision.find(({ name }) => name === precision)?.layers ?? 0;
  return [
    ...bytes('plan', a.planBytes, b.planBytes),
    ...bytes('activations', a.loaded?.deviceMemoryBytes, b.loaded?.deviceMemoryBytes),
    ...bytes('weights', a.summary.weightBytes, b.summary.weightBytes),
    ...bytes('written', a.summary.outputBytes, b.summary.outputBytes),
    ...count('layers', a.summary.layers, b.summary.layers),
    ...count('copies', a.summary.copies.layers, b.summary.copies.layers),
    ...[...precisions].flatMap((name) =>
      count(`in ${name}`, layersIn(a.summary, name), layersIn(b.summary, name)),
    ),
  ];
}

const ratio = (one: number, other: number): string => (one === 0 ? '' : (other / one).toFixed(2));

function countedChanges(diff: EngineDiff): [string, number][] {
  const counts = new Map<string, number>();
  for (const { changes } of diff.changed)
    for (const { what } of changes) counts.set(what, (counts.get(what) ?? 0) + 1);
  return [...counts].sort(([, many], [, few]) => few - many);
}

/** Names of tactics share long beginnings: they are shown from shortly before they part. */
function fromDifference(a: string, b: string): [string, string] {
  const width = 60;
  if (a.length <= width && b.length <= width) return [a, b];
  let same = 0;
  while (same < a.length && a[same] === b[same]) same++;
  const start = Math.max(0, same - 12);
  const shown = (text: string) => `${start === 0 ? '' : '…'}${cut(text.slice(start), width)}`;
  return [shown(a), shown(b)];
}

/** Long names differ at both ends: the middle goes. */
function cut(text: string, width: number): string {
  if (text.length <= width) return text;
  const tail = Math.floor((width - 1) / 2);
  return `${text.slice(0, width - 1 - tail)}…${text.slice(text.length - tail)}`;
}
