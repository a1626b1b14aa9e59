import { formatBytes, formatCount, plural } from '../../base/text/quantity.js';
import { outcomeExitCodes } from '../../errors.js';
import { compareModels } from '../../quality/models/compare-models.js';
import type {
  FieldChange,
  ModelComparison,
  ValueChanges,
  WeightDistance,
} from '../../quality/models/result.js';
import { formatMeasure } from '../../report/sentences.js';
import { defineCommand, type TextOutput } from '../command.js';

/** Weights, nodes and other things that the text lists of each kind; --json has all. */
const LISTED = 10;

export const command = defineCommand({
  arguments: [
    { name: 'A', describe: 'an ONNX model, such as the original' },
    { name: 'B', describe: 'the other, such as a new export or what a converter made of A' },
  ],
  examples: [
    'trtforge compare models v1.onnx v2.onnx',
    'trtforge compare models model.onnx model.fp16.onnx --json | jq .nodes.added',
  ],
  options: {},
  schema: async () => (await import('../../quality/models/result.js')).modelComparisonSchema,
  run: async ([a = '', b = ''], _options, context) => {
    const result = await compareModels({ a, b }, context);
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  render,
});

function render(result: ModelComparison, output: TextOutput): void {
  const { bold, dim, cyan, green, red } = output.colors;
  const { a, b, initializers, nodes, functions, others } = result;
  for (const [letter, { file, nodes: count, weightBytes, digest }] of [
    ['A', a],
    ['B', b],
  ] as const)
    output.line(
      `${letter} ${bold(file)}  ${dim(`${plural(count, 'node')}, ${formatBytes(weightBytes)} of weights, digest ${digest.slice(0, 12)}`)}`,
    );
  output.line();
  const row = (title: string, text: string) => output.line(`${cyan(title.padEnd(10))} ${text}`);
  const rows = (title: string, texts: readonly string[]) => {
    for (const [index, text] of listed(texts).entries()) row(index === 0 ? title : '', text);
  };
  rows('Model', result.facts.map(changeText));
  rows('Opsets', result.opsets.map(changeText));
  rows('Metadata', result.metadata.map(changeText));
  rows('Inputs', valueTexts(result.inputs));
  rows('Outputs', valueTexts(result.outputs));
  row('Weights', countsText(initializers));
  row('Nodes', countsText(nodes));
  rows('Functions', [
    ...functions.added.map((name) => `${name}: only in B`),
    ...functions.removed.map((name) => `${name}: only in A`),
  ]);
  rows(
    'Others',
    others.map(({ graph, field }) => `${field} of ${graph}`),
  );
  const list = (title: string, texts: readonly string[]) => {
    if (texts.length === 0) return;
    output.line();
    output.line(dim(title));
    for (const text of listed(texts)) output.line(`  ${text}`);
  };
  list('Weights changed, the largest difference first:', weightTexts(initializers.changed));
  list('Weights only in A:', initializers.removed.map(tensorText));
  list('Weights only in B:', initializers.added.map(tensorText));
  list(
    'Nodes changed:',
    nodes.changed.map(({ a: name, changes }) => `${name}: ${changes.map(nodeChangeText).join('; ')}`),
  );
  list(`Nodes only in A: ${operatorCounts(nodes.removed)}`, nodes.removed.map(nodeText));
  list(`Nodes only in B: ${operatorCounts(nodes.added)}`, nodes.added.map(nodeText));
  output.line();
  output.line(
    result.outcome === 'pass'
      ? green('The models are equal: builds of both have one identity.')
      : red('The models differ.'),
  );
}

function listed(texts: readonly string[]): readonly string[] {
  const more = texts.length - LISTED;
  return more <= 0 ? texts : [...texts.slice(0, LISTED), `and ${formatCount(more)} more`];
}

function countsText({ same, ...lists }: ModelComparison['initializers' | 'nodes']): string {
  const { changed, renamed, added, removed } = lists;
  const counts: readonly (readonly [number, string])[] = [
    [changed.length, 'changed'],
    [renamed.length, 'renamed'],
    [removed.length, 'only in A'],
    [added.length, 'only in B'],
  ];
  return [[same, 'equal'] as const, ...counts.filter(([count]) => count > 0)]
    .map(([count, what]) => `${formatCount(count)} ${what}`)
    .join(' · ');
}

const changeText = ({ field, a, b }: FieldChange): string => `${field}: ${a ?? 'none'} → ${b ?? 'none'}`;

interface Typed {
  readonly dtype: string | null;
  readonly shape: readonly (number | string | null)[] | null;
}

const typeText = ({ dtype, shape }: Typed): string =>
  `${dtype ?? 'unknown'} ${shape === null ? 'no shape' : `[${shape.map((size) => size ?? '?').join(', ')}]`}`;

const valueTexts = ({ changed, removed, added }: ValueChanges): readonly string[] => [
  ...changed.map(({ name, a, b }) => `${name}: ${typeText(a)} → ${typeText(b)}`),
  ...removed.map((value) => `${tensorText(value)}: only in A`),
  ...added.map((value) => `${tensorText(value)}: only in B`),
];

const tensorText = ({ name, ...type }: Typed & { readonly name: string }): string =>
  `${name} ${typeText(type)}`;

type Nodes = ModelComparison['nodes']['added'];

function operatorCounts(nodes: Nodes): string {
  const counts = new Map<string, number>();
  for (const { op } of nodes) counts.set(op, (counts.get(op) ?? 0) + 1);
  const ordered = [...counts].sort(([, one], [, other]) => other - one);
  return ordered.map(([op, count]) => `${op} ${formatCount(count)}`).join(' · ');
}

const nodeText = ({ op, name, outputs }: Nodes[number]): string =>
  `${op} "${name === '' ? (outputs[0] ?? '') : name}"`;

function weightTexts(changed: ModelComparison['initializers']['changed']): readonly string[] {
  const size = ({ distance }: (typeof changed)[number]) =>
    distance === null ? Number.POSITIVE_INFINITY : Number(distance.maxAbs);
  return changed
    .toSorted((one, other) => size(other) - size(one))
    .map(({ name, a, b, distance }) => {
      const [typeA, typeB] = [typeText(a), typeText(b)];
      return `${name}: ${typeA === typeB ? typeA : `${typeA} → ${typeB}`}${distanceText(distance)}`;
    });
}

const nodeChangeText = ({
  distance,
  ...change
}: ModelComparison['nodes']['changed'][number]['changes'][number]) =>
  `${change.a === change.b ? `${change.field}: ${change.a}` : changeText(change)}${distanceText(distance)}`;

function distanceText(distance: WeightDistance | null): string {
  if (distance === null) return '';
  const { different, elements, maxAbs, maxRelative, sqnr } = distance;
  if (different === 0) return ', equal values';
  const relative = maxRelative === null ? '' : `, relative ${formatMeasure(maxRelative)}`;
  const ratio = sqnr === null ? '' : `, SQNR ${formatMeasure(sqnr)} dB`;
  return `, ${formatCount(different)} of ${formatCount(elements)} differ: max ${formatMeasure(maxAbs)}${relative}${ratio}`;
}
