import { formatBytes, formatCount, plural } from '../../../base/text/quantity.js';
import type { ModelFacts } from '../../../formats/onnx/model-facts.js';
import { charts, code, facts, list, muted, note, type Section, strong, table } from '../../blocks.js';
import { barChart } from '../../chart/bars.js';
import type { Chart, Tone } from '../../chart/frame.js';
import type { ForgeResult } from '../../forge-result.js';
import { modelBytes, nameOfFile } from '../../sentences.js';

/** Operators drawn one by one; the rest share a bar. */
const OPS_DRAWN = 8;
const severityTone = { error: 'bad', warning: 'warn', info: 'quiet' } as const;

/** The content of the ONNX file: facts, bindings, operators, findings. */
export function modelSection({ model }: ForgeResult): Section | null {
  if (model === null) return null;
  const { inputs, outputs, externalFiles, findings, ops } = model;
  const opset = model.opsets[''] ?? model.opsets['ai.onnx'];
  const bindings = [
    ...inputs.map((binding) => ({ ...binding, direction: 'input' })),
    ...outputs.map((binding) => ({ ...binding, direction: 'output' })),
  ];
  return {
    id: 'model',
    title: 'The model',
    lead: `${nameOfFile(model.file)} has ${plural(model.nodesTotal, 'node')} and ${plural(model.parameters, 'parameter')}${opset === undefined ? '' : `, in opset ${opset}`}.`,
    blocks: [
      facts([
        ['file', code(model.file)],
        [
          'size',
          `${formatBytes(modelBytes(model))}${externalFiles.length === 0 ? '' : `, ${plural(externalFiles.length, 'external file')} included`}`,
        ],
        ['IR version', String(model.irVersion)],
        [
          'opsets',
          Object.entries(model.opsets)
            .map(([domain, version]) => `${domain === '' ? 'ai.onnx' : domain} ${version}`)
            .join(', '),
        ],
        ['producer', [model.producer, model.producerVersion].filter((name) => name !== '').join(' ') || '–'],
        ['weights', `${formatCount(model.parameters)} parameters, ${formatBytes(model.initializers.bytes)}`],
      ]),
      table(
        'Inputs and outputs',
        ['name', 'direction', 'dtype', 'shape'],
        bindings.map(({ name, direction, dtype, shape }) => [
          code(name),
          direction,
          dtype ?? 'unknown',
          shapeText(shape),
        ]),
      ),
      Object.keys(ops).length === 0
        ? null
        : charts({
            chart: opsChart(ops),
            caption: 'Nodes by operator, bodies of If, Loop and Scan included.',
          }),
      note(
        findings.length === 0 ? 'The inspection has no finding.' : strong(plural(findings.length, 'finding')),
      ),
      list(
        findings.map(({ severity, message, where, code: id }) => ({
          label: { text: severity, tone: severityTone[severity] },
          text: [message, muted(' at '), code(where), ' ', code(id)],
        })),
      ),
    ],
  };
}

/** "batch×3×224×224", with ? for a dimension without a name. */
const shapeText = (shape: readonly (number | string | null)[] | null): string =>
  shape === null
    ? 'unknown'
    : shape.length === 0
      ? 'scalar'
      : shape.map((dimension) => dimension ?? '?').join('×');

function opsChart(ops: ModelFacts['ops']): Chart {
  const sorted = Object.entries(ops).sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const drawn = sorted.slice(0, sorted.length > OPS_DRAWN + 1 ? OPS_DRAWN : sorted.length);
  const rest = sorted.slice(drawn.length);
  const bar = (label: string, amount: number, tone: Tone) => ({
    ...{ label, amount, tone },
    text: plural(amount, 'node'),
  });
  const others = rest.reduce((sum, [, count]) => sum + count, 0);
  return barChart('Nodes by operator', [
    ...drawn.map(([op, count]) => bar(op, count, 'accent')),
    ...(others > 0 ? [bar(`${rest.length} other operators`, others, 'quiet')] : []),
  ]);
}
