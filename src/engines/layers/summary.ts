import type { Finding } from '../../formats/onnx/model-facts.js';
import { isOnnxOperator } from '../../formats/onnx/operators.js';
import type { EngineLayer, EngineLayers, LayersSummary, OperatorTime } from './result.js';

type Group = LayersSummary['byType'][number];

/** Number of copies that a finding names. */
const NAMED = 3;

/** Counts and bytes of an engine's layers, all profiles together. */
export function summarizeLayers({ layers, bindings }: EngineLayers): LayersSummary {
  const copies = layers.filter((layer) => layer.copies);
  const constants = constantNames(layers);
  return {
    layers: layers.length,
    byType: grouped(layers, ({ type }) => type ?? 'unknown'),
    byPrecision: grouped(layers.filter(computes), ({ precision }) => precision ?? 'unknown'),
    weightBytes: inRange(sum(layers, ({ weightBytes }) => weightBytes) + readConstantBytes(layers, bindings)),
    outputBytes: sum(layers, ({ outputBytes }) => outputBytes ?? 0),
    openShapes: layers.filter(({ outputBytes }) => outputBytes === null).length,
    copies: {
      layers: copies.length,
      outputBytes: sum(copies, ({ outputBytes }) => outputBytes ?? 0),
      ofConstants: copies.filter((layer) => movesConstants(layer, constants)).length,
    },
    onnxNodes: new Set(layers.flatMap(({ onnxNodes }) => onnxNodes)).size,
  };
}

/** Types of layers that stand in the list and do nothing to a tensor. */
const IDLE: ReadonlySet<string> = new Set(['Constant', 'NoOp', 'shape_call']);

/** Whether a layer computes something: constants hold, copies move. */
export const computes = ({ type, copies }: Pick<EngineLayer, 'type' | 'copies'>): boolean =>
  !copies && !IDLE.has(type ?? '');

/** Findings in an engine's layers: copies that could be avoided, layers in a wider type, regions without names. */
export function layerFindings(read: EngineLayers, where: string): Finding[] {
  const { layers, bindings, detail } = read;
  if (detail === 'names') {
    const message =
      'The engine was built without detailed profiling verbosity, so its layers have names only. Build it with --builder-config profiling-verbosity=detailed (trtexec: --profilingVerbosity=detailed).';
    return [{ code: 'engine-names-only', severity: 'info', message, where }];
  }
  const constants = constantNames(layers);
  const copies = layers.filter((layer) => layer.copies);
  const inputs = new Set(bindings.filter(({ mode }) => mode === 'input').map(({ name }) => name));
  const outputs = new Set(bindings.filter(({ mode }) => mode === 'output').map(({ name }) => name));
  const ofConstants = copies.filter((layer) => movesConstants(layer, constants));
  const ofInputs = copies.filter((layer) => layer.inputs.some(({ name }) => inputs.has(name)));
  const ofOutputs = copies.filter((layer) => layer.outputs.some(({ name }) => outputs.has(name)));
  const between = copies.filter((layer) => ![...ofConstants, ...ofInputs, ...ofOutputs].includes(layer));
  const finding = (code: string, found: readonly EngineLayer[], what: string, advice: string): Finding[] =>
    found.length === 0
      ? []
      : [
          {
            code,
            severity: 'warning',
            message: `${found.length} ${what} (${named(found)}). ${advice}`,
            where,
          },
        ];
  return [
    ...finding(
      'engine-constant-copies',
      ofConstants,
      `${found(ofConstants)} the same weights again in every run`,
      'Other TensorRT versions fold them into the plan; each costs a launch.',
    ),
    ...finding(
      'engine-input-copies',
      ofInputs,
      `${found(ofInputs)} an input into the layout or type that the first layer wants`,
      'Pass the input in that type (a typed model, or I/O formats): there is no copy then.',
    ),
    ...finding(
      'engine-output-copies',
      ofOutputs,
      `${found(ofOutputs)} an output into the requested layout or type`,
      'Take the output in the type it is computed in where that is enough.',
    ),
    ...finding(
      'engine-reformats',
      between,
      `${found(between)} data between layers that want other layouts`,
      'Layers forced to another precision, or tactics without a common layout, are the usual reason.',
    ),
    ...widerFindings(layers, where),
  ];
}

const found = ({ length }: readonly EngineLayer[]) => (length === 1 ? 'layer copies' : 'layers copy');

/** The largest of them by name, with what all of them write. */
function named(layers: readonly EngineLayer[]): string {
  const largest = layers.toSorted((one, other) => (other.outputBytes ?? 0) - (one.outputBytes ?? 0));
  const bytes = sum(layers, ({ outputBytes }) => outputBytes ?? 0);
  const list = largest.slice(0, NAMED).map(({ name }) => `"${name}"`);
  const more = layers.length > NAMED ? ` and ${layers.length - NAMED} more` : '';
  const size =
    bytes < 2 ** 20 ? `${(bytes / 2 ** 10).toFixed(1)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  return `${size} a run: ${list.join(', ')}${more}`;
}

const NARROW: ReadonlySet<string> = new Set([
  'float16',
  'bfloat16',
  'int8',
  'float8_e4m3fn',
  'float4_e2m1fn',
]);

/** FP32 layers in an engine that mostly computes in less. */
function widerFindings(layers: readonly EngineLayer[], where: string): Finding[] {
  const computing = layers.filter(computes);
  const wide = computing.filter(({ precision }) => precision === 'float32');
  const narrow = computing.filter(({ precision }) => NARROW.has(precision ?? ''));
  if (wide.length === 0 || narrow.length <= wide.length) return [];
  const message = `${wide.length} of ${computing.length} computing layers ${wide.length === 1 ? 'is' : 'are'} in FP32 (${named(wide)}).`;
  return [{ code: 'engine-fp32-layers', severity: 'info', message, where }];
}

function grouped(layers: readonly EngineLayer[], key: (layer: EngineLayer) => string): Group[] {
  const groups = new Map<string, Group>();
  for (const layer of layers) {
    const name = key(layer);
    const group = groups.get(name) ?? { name, layers: 0, weightBytes: 0, outputBytes: 0 };
    group.layers++;
    group.weightBytes = inRange(group.weightBytes + layer.weightBytes);
    group.outputBytes = inRange(group.outputBytes + (layer.outputBytes ?? 0));
    groups.set(name, group);
  }
  return [...groups.values()].sort((a, b) => b.layers - a.layers || (a.name < b.name ? -1 : 1));
}

const constantNames = (layers: readonly EngineLayer[]): ReadonlySet<string> =>
  new Set(
    layers
      .filter(({ type }) => type === 'Constant')
      .flatMap(({ outputs }) => outputs.map(({ name }) => name)),
  );

/** Layers that hold weights, or move them into another layout in every run. */
export function constantLayers(layers: readonly EngineLayer[]): ReadonlySet<EngineLayer> {
  const names = constantNames(layers);
  return new Set(
    layers.filter((layer) => layer.type === 'Constant' || (layer.copies && movesConstants(layer, names))),
  );
}

const movesConstants = ({ inputs }: EngineLayer, constants: ReadonlySet<string>): boolean =>
  inputs.length > 0 && inputs.every(({ name }) => constants.has(name));

/** The compiler's layers read weights as tensors that nobody writes. */
function readConstantBytes(layers: readonly EngineLayer[], bindings: EngineLayers['bindings']): number {
  const known = new Set(bindings.map(({ name }) => name));
  for (const { outputs } of layers) for (const { name } of outputs) known.add(name);
  let total = 0;
  for (const { inputs } of layers) {
    for (const { name, bytes } of inputs) {
      if (known.has(name)) continue;
      known.add(name);
      total += bytes ?? 0;
    }
  }
  return inRange(total);
}

const inRange = (bytes: number) => Math.min(bytes, Number.MAX_SAFE_INTEGER);

/** Sizes from outside may be absurd; a sum stays an exact integer all the same. */
function sum(layers: readonly EngineLayer[], of: (layer: EngineLayer) => number): number {
  return inRange(layers.reduce((total, layer) => total + of(layer), 0));
}

/** Facts of a model's nodes, by the names that engines have for them. */
type NodeOperators = ReadonlyMap<string, { readonly op: string; readonly flops: number | null }>;

/** A layer with its time. */
interface TimedLayer extends Pick<EngineLayer, 'name' | 'type' | 'onnxNodes' | 'copies'> {
  /** Milliseconds of a run; null where it was not timed. */
  readonly ms: number | null;
}

/** Operators that take the time of what is fused with them. */
const HEAVY = /^(?:.*Conv.*|Gemm|.*MatMul.*|.*Attention|LSTM|GRU|RNN|Einsum)$/;
const LIGHT = /^(?:QuantizeLinear|DequantizeLinear|Cast|Identity|Constant|Reshape|Squeeze|Unsqueeze)$/;

/** What layers that stand for no operator are listed as. */
const REFORMAT = 'reformat';
const NO_NODE = 'no ONNX node';

/**
 * The node that a layer's time is counted for, so that the time of every layer is counted once: the one with the most FLOPs where the model is known, else the first that
 * multiplies tensors, else the first that is more than a cast. Null for copies and for layers without nodes.
 */
export function leadingNode(layer: Omit<TimedLayer, 'ms'>, nodes?: NodeOperators): string | null {
  if (layer.copies || layer.onnxNodes.length === 0) return null;
  const opOf = (node: string) => nodes?.get(node)?.op ?? operatorInName(node) ?? '';
  const flopsOf = (node: string) => nodes?.get(node)?.flops ?? 0;
  const costly = layer.onnxNodes.reduce((most, node) => (flopsOf(node) > flopsOf(most) ? node : most));
  if (flopsOf(costly) > 0) return costly;
  const find = (test: (op: string) => boolean) => layer.onnxNodes.find((node) => test(opOf(node)));
  return find((op) => HEAVY.test(op)) ?? find((op) => op !== '' && !LIGHT.test(op)) ?? layer.onnxNodes[0]!;
}

/** The ONNX operator that a layer's time is counted for; the layer's own type where the operator is not known. */
export function operatorOf(layer: Omit<TimedLayer, 'ms'>, nodes?: NodeOperators): string {
  if (layer.copies) return REFORMAT;
  const node = leadingNode(layer, nodes);
  if (node === null) return computes(layer) ? NO_NODE : (layer.type ?? NO_NODE);
  return nodes?.get(node)?.op ?? operatorInName(node) ?? layer.type ?? NO_NODE;
}

/** `/layer1/Conv_12` names its operator, as PyTorch's exporter writes it; undefined for other names. */
function operatorInName(node: string): string | undefined {
  const word = /([A-Za-z]+)(?:_\d+)?$/.exec(node.slice(node.lastIndexOf('/') + 1))?.[1] ?? '';
  return isOnnxOperator(word) ? word : undefined;
}

/** Time by ONNX operator. Every layer is in one of them, so that columns add up to the time of all layers. */
export function timesByOperator(
  sides: readonly (readonly TimedLayer[])[],
  nodes: readonly (NodeOperators | undefined)[] = [],
): OperatorTime[] {
  const byOp = new Map<string, { layers: number; ms: number | null }[]>();
  for (const [side, layers] of sides.entries())
    for (const layer of layers) {
      const op = operatorOf(layer, nodes[side]);
      const found = byOp.get(op) ?? sides.map(() => ({ layers: 0, ms: null }));
      byOp.set(op, found);
      const sum = found[side]!;
      sum.layers++;
      if (layer.ms !== null) sum.ms = (sum.ms ?? 0) + layer.ms;
    }
  const most = (each: OperatorTime['sides']) =>
    Math.max(...each.map(({ ms, layers }) => (ms ?? 0) + layers / 1e9));
  return [...byOp]
    .map(([op, found]) => ({ op, sides: found }))
    .sort((one, other) => most(other.sides) - most(one.sides));
}
