/** Markdown that states what it was passed: text from outside never becomes markup. */

/** A table of cells that are Markdown already. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Text from outside as Markdown prose, also inside a table cell: nothing in it starts markup, a mention or a new line. */
export function text(content: string): string {
  return oneLine(content)
    .replace(/[\\*_[\]#+!|~$]/g, (character) => `\\${character}`)
    .replaceAll('&', '&amp;')
    .replaceAll('`', '&#96;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replace(/@(?=\w)/g, '@&#8203;');
}

/** Text as a code span: fenced by more backticks than it contains, its pipes escaped for table cells. */
export function code(content: string): string {
  const line = oneLine(content).replaceAll('|', '\\|');
  const longest = Math.max(0, ...(line.match(/`+/g) ?? []).map((run) => run.length));
  const quote = '`'.repeat(longest + 1);
  return longest === 0 ? `${quote}${line || ' '}${quote}` : `${quote} ${line} ${quote}`;
}

/** A code block whose fence is longer than any run of backticks inside. */
export function fence(content: string): string {
  const longest = Math.max(2, ...(content.match(/`+/g) ?? []).map((run) => run.length));
  const quote = '`'.repeat(longest + 1);
  return `${quote}sh\n${content}\n${quote}`;
}

// Controls and format characters (bidirectional overrides among them) would move or hide what follows.
const oneLine = (content: string): string => content.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]+/gu, ' ');
