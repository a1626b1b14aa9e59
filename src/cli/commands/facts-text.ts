import { plural } from '../../base/text/quantity.js';
import type { LayerPrecisions } from '../../engines/identity/passport.js';
import type { Finding, ValueFacts } from '../../formats/onnx/model-facts.js';
import { floatingNodes, floatingSentence, layerSentences } from '../../report/sentences.js';
import type { TextOutput } from '../command.js';
import { shapeText } from './inspect-cost-text.js';

export function valueRows(
  values: readonly (Omit<ValueFacts, 'dtype'> & { readonly dtype: string | null })[],
): string[][] {
  return values.map(({ name, dtype, shape }) => [name, dtype ?? 'unknown', shapeText(shape)]);
}

/** A title and rows of cells in columns; nothing when there are no rows. */
export function section(output: TextOutput, title: string, rows: readonly (readonly string[])[]): void {
  const single = rows.every((row) => row.length === 1);
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  for (const [index, row] of rows.entries()) {
    const label = index === 0 ? output.colors.cyan(title.padEnd(10)) : ' '.repeat(10);
    const cells = single
      ? row
      : row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)));
    output.line(`${label} ${cells.join('  ')}`.trimEnd());
  }
}

/** So many places of findings that are alike are named; --json has all. */
const MOST_PLACES = 3;

/** Prints the findings, or that nothing looks wrong. */
export function renderFindings(findings: readonly Finding[], output: TextOutput): void {
  const { red, yellow, dim, green } = output.colors;
  output.line();
  if (findings.length === 0) {
    output.line(`${green('✓')} nothing looks wrong`);
    return;
  }
  const marks = { error: red('✗ error'), warning: yellow('! warning'), info: dim('· note') };
  // Those that are alike but for names and numbers once, with their places.
  const alike = new Map<string, Finding[]>();
  for (const finding of findings) {
    const key = `${finding.severity} ${finding.code} ${finding.message.replace(/"[^"]*"|\d+/g, '')}`;
    alike.set(key, [...(alike.get(key) ?? []), finding]);
  }
  const printed = new Set<string | undefined>();
  for (const group of alike.values()) {
    const { severity, code, message, remedy } = group[0]!;
    output.line(`${marks[severity]} ${dim(code)}  ${message}`);
    const places = group
      .slice(0, MOST_PLACES)
      .map(({ where }) => where)
      .join('; ');
    const rest = group.length - MOST_PLACES;
    output.line(`    ${dim(`at ${places}${rest > 0 ? `; ${rest} more like it` : ''}`)}`);
    // One line cures all that it concerns.
    if (remedy !== undefined && !printed.has(remedy)) output.line(`    → ${remedy}`);
    printed.add(remedy);
  }
}

/** Groups of nodes that are listed; --json has them all. */
const LISTED_GROUPS = 5;

/** Lines on the types that a quantized model's layers compute in, and on nodes quantized in vain. */
export function precisionLines(precisions: LayerPrecisions, { dim, yellow }: TextOutput['colors']): string[] {
  const groups = floatingNodes(precisions);
  const more = groups.length - LISTED_GROUPS;
  return [
    ...layerSentences(precisions),
    ...precisions.attentions.reasons.map((reason) => `${yellow('!')} ${reason}`),
    ...groups.slice(0, LISTED_GROUPS).map((group) => {
      const sentence = floatingSentence(group);
      return group.isProblem ? `${yellow('!')} ${sentence}` : dim(sentence);
    }),
    ...(more > 0 ? [dim(`${plural(more, 'more reason')} with --json`)] : []),
  ];
}
