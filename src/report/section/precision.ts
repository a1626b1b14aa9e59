import { formatCount, formatShare, plural } from '../../base/text/quantity.js';
import { barChart } from '../chart/bars.js';
import { type Markup, markup } from '../markup.js';
import { badge, code, details, figure, type SectionFacts } from '../parts.js';
import type { ForgeResult, ReportConversion } from '../result.js';
import { conversionSentence, precisionWord } from '../sentences.js';

/** A rule that catches thousands of nodes stays readable: the page lists this many, `report.json` all of them. */
const NODES_LISTED = 200;

/** What computes in the lower precision now, and which rule kept which node in FP32, and why. `scope` begins the ids where a page has several results. */
export function precisionSection({ conversion }: ForgeResult, scope = ''): SectionFacts | null {
  if (conversion === null) return null;
  return {
    id: `${scope}precision`,
    title: 'Precision',
    lead: conversionSentence(conversion),
    body: [
      conversion.warnings.length > 0 &&
        markup`<ul class="findings">${conversion.warnings.map((warning) => markup`<li>${badge('warning', 'warn')} ${warning}</li>`)}</ul>`,
      figure(
        nodesChart(conversion, scope),
        `Floating-point nodes by the precision they compute in, and by the rule that kept them.`,
      ),
      conversion.rules.filter((rule) => rule.nodes.length > 0).map(ruleDetails),
      conversion.counts.length > 0 &&
        markup`<p class="counts">${conversion.counts.map(({ name, count }) => markup`<span>${name}: ${formatCount(count)}</span>`)}</p>`,
    ],
  };
}

function nodesChart(conversion: ReportConversion, scope: string): Markup {
  const all = conversion.convertedNodes + conversion.keptNodes;
  const word = precisionWord(conversion.precision);
  const row = (label: string, count: number, tone: 'accent' | 'quiet') => ({
    label,
    text: all === 0 ? '0' : `${formatCount(count)} · ${formatShare(count / all)}`,
    parts: [{ amount: count, tone, name: plural(count, 'node') }],
  });
  const kept = conversion.rules.filter((rule) => rule.nodes.length > 0);
  return barChart(
    {
      id: `${scope}nodes-by-precision`,
      title: 'Nodes by precision',
      description: `${plural(conversion.convertedNodes, 'node')} in ${word}; ${kept.map((rule) => `${rule.nodes.length} in FP32 by rule ${rule.id}`).join(', ') || 'none in FP32'}.`,
    },
    [
      row(word, conversion.convertedNodes, 'accent'),
      ...kept.map((rule) => row(`FP32: ${rule.id}`, rule.nodes.length, 'quiet')),
    ],
  );
}

function ruleDetails(rule: ReportConversion['rules'][number]): Markup {
  const listed = rule.nodes.slice(0, NODES_LISTED);
  const more = rule.nodes.length - listed.length;
  return details(
    markup`${badge('FP32', 'quiet')} <strong>${rule.title}</strong> <span class="muted">${plural(rule.nodes.length, 'node')}</span><span class="reason">${rule.reason}</span>`,
    markup`<ul class="nodes">${listed.map((node) => markup`<li>${code(node.name)} <span class="muted">${node.op}</span>${node.detail !== null && markup` <span class="why">${node.detail}</span>`}</li>`)}</ul>${more > 0 && markup`<p class="muted">and ${formatCount(more)} more in report.json</p>`}`,
  );
}
