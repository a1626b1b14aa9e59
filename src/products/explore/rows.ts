import type { EngineLayer, LayerTensor } from '../../engines/layers/result.js';
import { computes, constantLayers, leadingNode, operatorOf } from '../../engines/layers/summary.js';
import { joinLayers } from '../../quality/bench/times.js';
import { errorShare } from '../../quality/verify/error-map.js';
import { noLayer } from './model-layers.js';
import type { Row, Side, Tensor } from './result.js';
import type { Evidence, Times } from './sources.js';

/** Attributes longer than this are cut: weights of a few hundred values stand among them. */
const LONGEST_ATTRIBUTE = 300;

/** A row and the layer that it shows. */
export interface LayerRow {
  readonly layer: EngineLayer;
  readonly row: Row;
}

/** The rows of one side, and what they have together. */
export function sideOf(evidence: Evidence): { readonly side: Side; readonly rows: readonly LayerRow[] } {
  const { kind, file, from, times } = evidence;
  const profiles = new Set(evidence.layers.map(({ profile }) => profile));
  const profile = timedProfile(evidence.layers, times);
  const layers = evidence.layers.filter((layer) => layer.profile === profile);
  const timed = withTimes(layers, times, profile);
  const tensors = new TensorTable();
  const rows = rowsOf(evidence, layers, timed, tensors);
  const all = rows.map(({ row }) => row);
  const side: Side = {
    ...{ kind, file, from: [...from] },
    profile: kind === 'onnx' ? null : profile,
    timing: times && {
      file: times.file,
      runs: Math.max(0, ...times.layers.map(({ runs }) => runs)),
      totalMs: totalMsOf(timed),
      measuredMs: times.measuredMs,
    },
    totals: totalsOf(all),
    tensors: tensors.list,
    rows: all,
    notes: [
      ...evidence.notes,
      ...(profiles.size > 1 ? [`These are the layers of profile ${profile}, one of ${profiles.size}.`] : []),
    ],
  };
  return { side, rows };
}

/** A row for each timed layer, whose tensors get places in `tensors`; `layers` are those of the profile. */
function rowsOf(
  evidence: Evidence,
  layers: readonly EngineLayer[],
  timed: readonly Timed[],
  tensors: TensorTable,
): readonly LayerRow[] {
  const totalMs = totalMsOf(timed);
  const why = reasons(evidence);
  const errors = errorsByNode(evidence);
  const sensitivity = sensitivityByNode(evidence);
  const shared = sharedNodes(layers);
  const constants = constantLayers(layers);
  return timed.map(({ layer, ms }) => {
    const { name, type, precision, copies, onnxNodes, outputs, weightBytes, outputBytes, tactic } = layer;
    const worst = onnxNodes.flatMap((node) => errors.get(node) ?? []).sort(byError)[0];
    const first = onnxNodes.find((node) => sensitivity.has(node));
    const row: Row = {
      ...{ name, type, precision, copies, weightBytes, ms, constant: constants.has(layer) },
      why: why(layer),
      format: outputs[0]?.format ?? null,
      bytes: outputBytes,
      tactic: tactic.name ?? tactic.value,
      onnx: onnxNodes,
      operator: operatorOf(layer, evidence.model?.nodes),
      flops: copies ? null : flopsOf(onnxNodes, evidence, shared),
      share: shareOf(ms, totalMs),
      error: worst ?? null,
      sensitivityDb: first === undefined ? null : (sensitivity.get(first) ?? null),
      inputs: layer.inputs.map((tensor) => tensors.place(tensor)),
      outputs: outputs.map((tensor) => tensors.place(tensor)),
      attributes: Object.entries(layer.attributes).map(([key, value]) => [key, attributeText(value)]),
    };
    return { layer, row };
  });
}

function totalsOf(rows: readonly Row[]): Side['totals'] {
  const sum = (of: (row: Row) => number | null) => rows.reduce((total, row) => total + (of(row) ?? 0), 0);
  return {
    rows: rows.length,
    copies: rows.filter(({ copies }) => copies).length,
    bytes: sum(({ bytes }) => bytes),
    weightBytes: sum(({ weightBytes }) => weightBytes),
    flops: rows.some(({ flops }) => flops !== null) ? sum(({ flops }) => flops) : null,
  };
}

/** The profile that the times name (`name [profile 1]`), else the first. */
function timedProfile(layers: readonly EngineLayer[], times: Times | null): number {
  const named = times?.layers.flatMap(({ name }) => / \[profile (\d{1,6})\]$/i.exec(name)?.[1] ?? [])[0];
  const profile = Number(named ?? 0);
  return layers.some((layer) => layer.profile === profile) ? profile : (layers[0]?.profile ?? 0);
}

interface Timed {
  readonly layer: EngineLayer;
  readonly ms: number | null;
}

/** Layers in their order with their times; a time of a name that no layer has stands at the end, so that times add up. */
function withTimes(layers: readonly EngineLayer[], times: Times | null, profile: number): readonly Timed[] {
  const joined = times && joinLayers(times.layers, layers, profile);
  if (joined === null) return layers.map((layer) => ({ layer, ms: null }));
  const ms = new Map<number, number>();
  const foreign: Timed[] = [];
  for (const time of joined.layers) {
    if (time.index !== null) ms.set(time.index, (ms.get(time.index) ?? 0) + time.ms);
    else if (time.ms > 0)
      foreign.push({ layer: { ...noLayer, index: layers.length, name: time.name }, ms: time.ms });
  }
  return [...layers.map((layer) => ({ layer, ms: ms.get(layer.index) ?? null })), ...foreign];
}

const totalMsOf = (timed: readonly Timed[]): number => timed.reduce((sum, { ms }) => sum + (ms ?? 0), 0);

/** Of the whole, from 0 to 1; null for a layer without a time. */
function shareOf(ms: number | null, totalMs: number): number | null {
  if (ms === null) return null;
  return totalMs === 0 ? 0 : ms / totalMs;
}

/** Tensors once each, by name. */
class TensorTable {
  readonly list: Tensor[] = [];
  readonly #places = new Map<string, number>();

  place({ name, dtype, shape, format, bytes }: LayerTensor): number {
    const known = this.#places.get(name);
    if (known !== undefined) return known;
    this.#places.set(name, this.list.length);
    return this.list.push({ name, dtype, shape, format, bytes }) - 1;
  }
}

/** In how many computing layers each node is: their FLOPs are divided among them. */
function sharedNodes(layers: readonly EngineLayer[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const layer of layers.filter(computes))
    for (const node of layer.onnxNodes) counts.set(node, (counts.get(node) ?? 0) + 1);
  return counts;
}

function flopsOf(
  nodes: readonly string[],
  { model }: Evidence,
  shared: ReadonlyMap<string, number>,
): number | null {
  const known = nodes.flatMap((node) => {
    const flops = model?.nodes.get(node)?.flops ?? null;
    return flops === null ? [] : [flops / (shared.get(node) ?? 1)];
  });
  return known.length === 0 ? null : known.reduce((sum, flops) => sum + flops, 0);
}

type RowError = NonNullable<Row['error']>;

const byError = (one: RowError, other: RowError): number =>
  errorShare(other.sqnrDb, 0) - errorShare(one.sqnrDb, 0);

/** Errors of tensors by the node that makes them: a nameless one is found by the tensor. */
function errorsByNode({ errors, model }: Evidence): ReadonlyMap<string, readonly RowError[]> {
  const makers = new Map(
    [...(model?.nodes ?? [])].flatMap(([node, { outputs }]) => outputs.map((name) => [name, node])),
  );
  const byNode = new Map<string, RowError[]>();
  for (const { name, node, outcome, error } of errors) {
    if (error === null) continue;
    const key = node || makers.get(name) || `node_of_${name}`;
    byNode.set(key, [...(byNode.get(key) ?? []), { tensor: name, sqnrDb: error.sqnr, outcome }]);
  }
  return byNode;
}

/** What quantizing the unit of a node alone does to the model, in decibels. */
const sensitivityByNode = ({ advice }: Evidence) =>
  new Map((advice?.units ?? []).flatMap(({ nodes, alone }) => nodes.map((node) => [node, alone.sqnrDb])));

/** Why a layer is in its precision: what decided it, as far as a result that was read states it. */
function reasons({
  advice,
  conversion,
  passport,
  model,
  kind,
}: Evidence): (layer: EngineLayer) => string | null {
  const stated = new Map<string, string>();
  const state = (node: string, why: string) => stated.has(node) || stated.set(node, why);
  for (const { nodes, why } of advice?.units ?? []) for (const node of nodes) state(node, why);
  for (const { node, reason } of advice?.ruledOut ?? []) state(node, reason);
  for (const { node, reason } of conversion?.quantization?.nodes ?? []) state(node, reason);
  for (const { node, reason } of conversion?.kept ?? []) state(node, reason);
  for (const { node, reason } of passport?.plan.precisions?.floating ?? []) state(node, reason);
  return (layer) => {
    if (layer.copies) return 'It computes nothing: it moves data into another layout or type.';
    const node = layer.onnxNodes.find((each) => stated.has(each));
    if (node !== undefined) return `${node}: ${stated.get(node)}`;
    const leading = leadingNode(layer, model?.nodes);
    const asked = leading === null ? undefined : model?.nodes.get(leading)?.dtype;
    if (kind === 'onnx' || leading === null || asked == null || layer.precision === null) return null;
    return asked === layer.precision
      ? `The model asks for it: ${leading} computes ${asked} there too.`
      : `${leading} computes ${asked} in the model; the builder chose ${layer.precision}.`;
  };
}

function attributeText(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > LONGEST_ATTRIBUTE ? `${text.slice(0, LONGEST_ATTRIBUTE)}…` : text;
}
