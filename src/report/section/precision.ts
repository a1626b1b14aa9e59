import { formatCount, formatShare, plural } from '../../base/text/quantity.js';
import type { ConversionResult } from '../../formats/precision/conversion.js';
import { betweenRule, rules } from '../../formats/precision/rules.js';
import { barChart } from '../chart/bars.js';
import { type Markup, markup } from '../markup.js';
import { badge, code, details, figure, type SectionFacts } from '../parts.js';
import type { ForgeResult } from '../result.js';
import { conversionSentence, precisionLabel } from '../sentences.js';

/** A rule that catches thousands of nodes stays readable: the page lists this many, `report.json` all of them. */
const NODES_LISTED = 200;

/** What computes in the lower precision now, and which rule kept which node in FP32, and why. `scope` begins the ids where a page has several results. */
export function precisionSection({ conversion }: ForgeResult, scope = ''): SectionFacts | null {
  if (conversion === null) return null;
  const counts = countsOf(conversion);
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
      keptByRule(conversion).map(ruleDetails),
      counts.length > 0 &&
        markup`<p class="counts">${counts.map(({ name, count }) => markup`<span>${name}: ${formatCount(count)}</span>`)}</p>`,
    ],
  };
}

function nodesChart(conversion: ConversionResult, scope: string): Markup {
  const all = conversion.nodes.converted + conversion.nodes.kept;
  const word = precisionLabel(conversion.precision);
  const row = (label: string, count: number, tone: 'accent' | 'quiet') => ({
    label,
    text: all === 0 ? '0' : `${formatCount(count)} · ${formatShare(count / all)}`,
    parts: [{ amount: count, tone, name: plural(count, 'node') }],
  });
  const kept = keptByRule(conversion);
  return barChart(
    {
      id: `${scope}nodes-by-precision`,
      title: 'Nodes by precision',
      description: `${plural(conversion.nodes.converted, 'node')} in ${word}; ${kept.map((rule) => `${rule.nodes.length} in FP32 by rule ${rule.id}`).join(', ') || 'none in FP32'}.`,
    },
    [
      row(word, conversion.nodes.converted, 'accent'),
      ...kept.map((rule) => row(`FP32: ${rule.id}`, rule.nodes.length, 'quiet')),
    ],
  );
}

function ruleDetails(rule: KeptByRule): Markup {
  const listed = rule.nodes.slice(0, NODES_LISTED);
  const more = rule.nodes.length - listed.length;
  return details(
    markup`${badge('FP32', 'quiet')} <strong>${rule.title}</strong> <span class="muted">${plural(rule.nodes.length, 'node')}</span><span class="reason">${rule.reason}</span>`,
    markup`<ul class="nodes">${listed.map((node) => markup`<li>${code(node.node)} <span class="muted">${node.op}</span> <span class="why">${node.reason}</span></li>`)}</ul>${more > 0 && markup`<p class="muted">and ${formatCount(more)} more in report.json</p>`}`,
  );
}

interface KeptByRule {
  readonly id: string;
  readonly title: string;
  /** Why nodes that this rule catches stay as they are. */
  readonly reason: string;
  readonly nodes: ConversionResult['kept'];
}

const reasons: ReadonlyMap<string, string> = new Map(
  [...rules, betweenRule].map(({ id, reason }) => [id, reason]),
);

/** The nodes that stay in FP32, by the rules that kept some. */
export const keptByRule = (conversion: ConversionResult): readonly KeptByRule[] =>
  conversion.rules
    .filter(({ nodes }) => nodes > 0)
    .map(({ id, title }) => ({
      id,
      title,
      reason: reasons.get(id) ?? '',
      nodes: conversion.kept.filter(({ rule }) => rule === id),
    }));

function countsOf({ nodes, casts, weights, functionsInlined }: ConversionResult) {
  const all = [
    { name: 'nodes without a floating-point value', count: nodes.untouched },
    { name: 'casts added', count: casts.added },
    { name: 'casts removed', count: casts.removed },
    { name: 'weights converted', count: weights.converted },
    { name: 'weights kept in FP32', count: weights.keptFp32 },
    { name: 'weight values clamped to the largest finite one', count: weights.saturated },
    { name: 'weight values that became zero', count: weights.toZero },
    { name: 'weight values that became subnormal', count: weights.subnormal },
    { name: 'functions inlined', count: functionsInlined },
  ];
  return all.filter(({ count }) => count > 0);
}
