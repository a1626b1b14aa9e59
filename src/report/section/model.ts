import { formatBytes, formatCount, plural } from '../../base/text/quantity.js';
import type { ModelFacts } from '../../formats/onnx/model-facts.js';
import { barChart } from '../chart/bars.js';
import { type Markup, markup } from '../markup.js';
import { badge, code, facts, figure, type SectionFacts, table } from '../parts.js';
import type { ForgeResult } from '../result.js';
import { modelBytes, modelSentence } from '../sentences.js';

/** Operators drawn one by one; the rest share a bar. */
const OPS_DRAWN = 8;
const severityTone = { error: 'bad', warning: 'warn', info: 'quiet' } as const;

/** What is in the ONNX file: facts, bindings, operators, findings. `scope` begins the ids where a page has several results. */
export function modelSection({ model }: ForgeResult, scope = ''): SectionFacts | null {
  if (model === null) return null;
  return {
    id: `${scope}model`,
    title: 'The model',
    lead: modelSentence(model),
    body: [
      facts([
        ['file', code(model.file)],
        [
          'size',
          `${formatBytes(modelBytes(model))}${model.externalFiles.length === 0 ? '' : `, ${plural(model.externalFiles.length, 'external file')} included`}`,
        ],
        ['IR version', String(model.irVersion)],
        [
          'opsets',
          Object.entries(model.opsets)
            .map(([domain, version]) => `${domain === '' ? 'ai.onnx' : domain} ${version}`)
            .join(', '),
        ],
        ['producer', [model.producer, model.producerVersion].filter((part) => part !== '').join(' ') || '–'],
        ['weights', `${formatCount(model.parameters)} parameters, ${formatBytes(model.initializers.bytes)}`],
      ]),
      bindings(model),
      Object.keys(model.ops).length > 0 &&
        figure(opsChart(model, scope), 'Nodes by operator, bodies of If, Loop and Scan included.'),
      findings(model),
    ],
  };
}

function bindings(model: ModelFacts): Markup {
  const row = (direction: string) => (binding: ModelFacts['inputs'][number]) => [
    code(binding.name),
    direction,
    binding.dtype ?? 'unknown',
    shapeText(binding.shape),
  ];
  return table(
    'Inputs and outputs',
    [{ title: 'name' }, { title: 'direction' }, { title: 'dtype' }, { title: 'shape' }],
    [...model.inputs.map(row('input')), ...model.outputs.map(row('output'))],
  );
}

/** "batch×3×224×224", with ? for a dimension nobody named. */
const shapeText = (shape: readonly (number | string | null)[] | null): string =>
  shape === null
    ? 'unknown'
    : shape.length === 0
      ? 'scalar'
      : shape.map((dimension) => dimension ?? '?').join('×');

function opsChart(model: ModelFacts, scope: string): Markup {
  const sorted = Object.entries(model.ops).sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const drawn = sorted.slice(0, sorted.length > OPS_DRAWN + 1 ? OPS_DRAWN : sorted.length);
  const rest = sorted.slice(drawn.length);
  const restCount = rest.reduce((sum, [, count]) => sum + count, 0);
  const rows = [
    ...drawn,
    ...(rest.length > 0 ? [[`${rest.length} other operators`, restCount] as const] : []),
  ];
  return barChart(
    {
      id: `${scope}ops-chart`,
      title: 'Nodes by operator',
      description: rows.map(([op, count]) => `${op}: ${count}`).join(', '),
    },
    rows.map(([op, count], index) => ({
      label: op,
      text: formatCount(count),
      parts: [
        { amount: count, tone: index < drawn.length ? 'accent' : 'quiet', name: plural(count, 'node') },
      ],
    })),
  );
}

function findings({ findings: found }: ModelFacts): Markup {
  if (found.length === 0) return markup`<p class="muted">The inspection has no finding.</p>`;
  return markup`<h3>Findings</h3><ul class="findings">${found.map(
    (finding) =>
      markup`<li>${badge(finding.severity, severityTone[finding.severity])} ${finding.message} <span class="muted">at ${code(finding.where)}</span> <span class="code">${finding.code}</span></li>`,
  )}</ul>`;
}
