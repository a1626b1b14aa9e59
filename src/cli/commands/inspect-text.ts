import { formatBytes, formatCount, formatStatistic, plural } from '../../base/text/quantity.js';
import type { ModelFacts } from '../../formats/onnx/model-facts.js';
import type { TextOutput } from '../command.js';
import { table } from '../text.js';
import { renderFindings, section, valueRows } from './facts-text.js';
import { figuresText, flopRows, gapRows, memoryRows, shortCount } from './inspect-cost-text.js';

const MOST_OPS = 12;

/** The text view of an ONNX model: what goes in and out, how large it is, what it is made of, what looks wrong. */
export function renderModel(facts: ModelFacts, output: TextOutput): void {
  const { bold, dim } = output.colors;
  const opset = facts.opsets['ai.onnx'];
  const more = Object.entries(facts.opsets).filter(([domain]) => domain !== 'ai.onnx');
  const about = [
    `ONNX IR ${facts.irVersion}`,
    opset === undefined ? 'no opset' : `opset ${opset}`,
    ...more.map(([domain, version]) => `${domain} ${version}`),
    `${facts.producer} ${facts.producerVersion}`.trim(),
    formatBytes(facts.fileBytes),
  ].filter((part) => part !== '');
  output.line(`${bold(facts.file)}  ${dim(about.join(' · '))}`);
  output.line();
  section(output, 'Inputs', valueRows(facts.inputs));
  section(output, 'Outputs', valueRows(facts.outputs));
  section(output, 'Nodes', nodeRows(facts));
  section(output, 'Weights', weightRows(facts));
  if (facts.cost !== undefined) {
    section(output, 'FLOPs', flopRows(facts.cost));
    section(output, 'Memory', memoryRows(facts.cost));
    section(output, 'Unknown', gapRows(facts.cost));
  }
  section(
    output,
    'Files',
    facts.externalFiles.map(({ path, bytes }) => [
      path,
      bytes === null ? 'not readable' : formatBytes(bytes),
    ]),
  );
  section(
    output,
    'Functions',
    facts.functions.map(({ domain, name, nodes }) => [`${domain}::${name}`, plural(nodes, 'node')]),
  );
  if (facts.nodeList !== undefined) renderNodes(facts.nodeList, output);
  if (facts.weightList !== undefined) renderWeights(facts.weightList, output);
  renderFindings(facts.findings, output);
}

function renderWeights(weights: NonNullable<ModelFacts['weightList']>, { line, colors }: TextOutput): void {
  const rows = weights.map(({ name, dtype, shape, min, max, zeros, sparse24 }) => [
    dtype,
    shape.join('x') || 'scalar',
    ...[min, max].map((value) => (value === null ? '–' : formatStatistic(value))),
    zeros === null ? '–' : formatCount(zeros),
    sparse24 === null ? '–' : sparse24 ? 'yes' : 'no',
    name,
  ]);
  const [titles = '', ...lines] = table(['TYPE', 'SHAPE', 'MIN', 'MAX', 'ZEROS', '2:4', 'WEIGHT'], rows);
  line();
  line(colors.dim(titles));
  for (const text of lines) line(text);
}

/** Two lines a node: operator, name, what goes in and out; output shapes, FLOPs, attributes. */
function renderNodes(nodes: NonNullable<ModelFacts['nodeList']>, { line, colors }: TextOutput): void {
  line();
  for (const node of nodes) {
    const { op, name, inputs, outputs, attributes } = node;
    const values = Object.entries(attributes).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
    line(`${colors.cyan(op)} ${colors.bold(name)}  ${inputs.join(', ')} → ${outputs.join(', ')}`);
    line(
      `  ${[figuresText(node), ...(values.length > 0 ? [colors.dim(values.join('  '))] : [])].join('  ')}`,
    );
  }
}

function nodeRows(facts: ModelFacts): string[][] {
  const total =
    facts.nodesTotal === facts.nodes ? `${facts.nodes}` : `${facts.nodes}, with bodies ${facts.nodesTotal}`;
  const ops = Object.entries(facts.ops);
  const shown = ops.slice(0, MOST_OPS).map(([type, count]) => `${type} ${count}`);
  const rest = ops.length - shown.length;
  const lines = wrapped(rest > 0 ? [...shown, `and ${rest} more types`] : shown);
  return [[total], ...lines.map((line) => [line])];
}

function weightRows(facts: ModelFacts): string[][] {
  const { initializers, parameters, initializersByDtype, sparseInitializers } = facts;
  if (initializers.count === 0 && sparseInitializers === 0) return [];
  const sparse = sparseInitializers === 0 ? '' : `, ${sparseInitializers} sparse`;
  const first = [
    `${shortCount(parameters)} parameters`,
    `${plural(initializers.count, 'tensor')}${sparse}`,
    formatBytes(initializers.bytes),
  ];
  const byDtype = Object.entries(initializersByDtype);
  if (byDtype.length < 2) return [[...first, byDtype.map(([dtype]) => dtype).join('')]];
  byDtype.sort(([, a], [, b]) => b.bytes - a.bytes);
  return [
    first,
    ...byDtype.map(([dtype, { count, bytes }]) => [
      `  ${dtype}`,
      plural(count, 'tensor'),
      formatBytes(bytes),
    ]),
  ];
}

/** Joins with " · " into lines that fit a terminal. */
function wrapped(parts: readonly string[]): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + part.length < 76) lines[lines.length - 1] = `${last} · ${part}`;
    else lines.push(part);
  }
  return lines;
}
