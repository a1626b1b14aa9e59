import { formatCount, formatShare, plural } from '../../../base/text/quantity.js';
import type { ConversionResult } from '../../../formats/precision/result.js';
import { betweenRule, rules } from '../../../formats/precision/rules.js';
import {
  charts,
  code,
  labelled,
  list,
  muted,
  note,
  numbers,
  type Section,
  strong,
  table,
} from '../../blocks.js';
import { barChart } from '../../chart/bars.js';
import type { Tone } from '../../chart/frame.js';
import type { ForgeResult } from '../../forge-result.js';
import { computedNodes, conversionSentence, priceTable } from '../../sentences.js';

/** The nodes in the lower precision now, and those kept in FP32, each by its rule, and why. */
export function precisionSection({ conversion }: ForgeResult): Section | null {
  if (conversion === null) return null;
  const { label, kinds, all, lowest, others, stay } = computedNodes(conversion);
  const counts = countsText(conversion);
  const bar = (label: string, amount: number, tone: Tone) => ({
    ...{ label, amount, tone },
    text: all === 0 ? '0' : `${formatCount(amount)} · ${formatShare(amount / all)}`,
  });
  return {
    id: 'precision',
    title: 'Precision',
    lead: conversionSentence(conversion),
    blocks: [
      labelled('warning', 'warn', conversion.warnings),
      charts({
        chart: barChart('Nodes by precision', [
          bar(label, lowest, 'accent'),
          ...others.map(({ type, id, nodes }) => bar(`${type}: ${id}`, nodes.length, 'quiet')),
        ]),
        caption: `${kinds.map(({ kind }) => `${kind[0]!.toUpperCase()}${kind.slice(1)}s`).join(', ')} by what they compute in, and by the rule that decided it.`,
      }),
      list(
        [...others, ...stay].map(({ id, title, nodes, type }) => ({
          label: { text: type, tone: 'quiet' },
          text: [strong(title), muted(` ${plural(nodes.length, 'node')}`)],
          note: reasons.get(id),
          items: nodes.map(({ node, op, reason }) => ({ text: [code(node), ' ', muted(op)], note: reason })),
        })),
      ),
      counts === '' ? null : note(muted(counts)),
    ],
  };
}

/** What a search after a failure found, and what its engine costs beside the failed one and beside FP32. */
export function healSection({ heal }: ForgeResult): Section | null {
  if (heal === null) return null;
  const { columns, rows } = priceTable(heal);
  return {
    id: 'heal',
    title: 'Healed',
    lead: `${heal.headline} ${plural(heal.tried, 'candidate')} tried, judged as the one that failed.`,
    blocks: [
      note(muted(`What failed: ${heal.failed}`)),
      table('What it costs', ['what', ...numbers(...columns.slice(1))], rows),
      list(
        heal.raised.flatMap(({ nodes, to }) =>
          nodes.map((node) => ({ text: [code(node), ' ', muted(to.toUpperCase())] })),
        ),
      ),
      labelled('why', 'quiet', heal.reasons),
    ],
  };
}

const reasons: ReadonlyMap<string, string> = new Map(
  [...rules, betweenRule].map(({ id, reason }) => [id, reason]),
);

/** `casts added: 6 · weights converted: 107`. */
function countsText({ nodes, casts, weights, functionsInlined }: ConversionResult): string {
  const all: readonly (readonly [number, string])[] = [
    [nodes.untouched, 'nodes without a floating-point value'],
    [casts.added, 'casts added'],
    [casts.removed, 'casts removed'],
    [weights.converted, 'weights converted'],
    [weights.keptFp32, 'weights kept in FP32'],
    [weights.saturated, 'weight values clamped to the largest finite one'],
    [weights.toZero, 'weight values that became zero'],
    [weights.subnormal, 'weight values that became subnormal'],
    [functionsInlined, 'functions inlined'],
  ];
  const found = all.filter(([count]) => count > 0);
  return found.map(([count, what]) => `${what}: ${formatCount(count)}`).join(' · ');
}
