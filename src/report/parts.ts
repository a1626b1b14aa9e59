import { type Content, type Markup, markup } from './markup.js';

/** The pieces every section of the page is made of. */

export interface SectionFacts {
  /** Target of the contents list and of links. */
  readonly id: string;
  readonly title: string;
  /** The section's finding in one or two sentences; a reader in a hurry reads only these. */
  readonly lead: string;
  readonly body: Content;
}

export function section(facts: SectionFacts): Markup {
  return markup`<section id="${facts.id}" aria-labelledby="${facts.id}-heading"><h2 id="${facts.id}-heading">${facts.title}</h2><p class="lead">${facts.lead}</p>${facts.body}</section>`;
}

/** A section within one: the same facts under a heading of the next level. */
export const subsection = ({ id, title, lead, body }: SectionFacts): Markup =>
  markup`<h3 id="${id}">${title}</h3><p>${lead}</p>${body}`;

export const figure = (chart: Markup, caption: Content): Markup =>
  markup`<figure>${chart}<figcaption>${caption}</figcaption></figure>`;

export interface Column {
  readonly title: string;
  /** Numbers are set flush right with even digits. */
  readonly numeric?: true;
}

/** A table with a caption; the first cell of each row is the row's header. Wide tables scroll in their own box, which a keyboard can reach. */
export function table(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly Content[])[],
): Markup {
  const heads = columns.map(
    (column) => markup`<th scope="col" class="${column.numeric ? 'number' : 'words'}">${column.title}</th>`,
  );
  const cell = (content: Content, index: number) => {
    const kind = columns[index]?.numeric ? 'number' : 'words';
    return index === 0
      ? markup`<th scope="row" class="${kind}">${content}</th>`
      : markup`<td class="${kind}">${content}</td>`;
  };
  const lines = rows.map((row) => markup`<tr>${row.map(cell)}</tr>`);
  return markup`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table><caption><span>${caption}</span></caption><thead><tr>${heads}</tr></thead><tbody>${lines}</tbody></table></div>`;
}

/** Names and what stands for them, as a description list; `wide` ones (digests, paths) take a line of their own. */
export function facts(pairs: readonly (readonly [string, Content, 'wide'?])[]): Markup {
  return markup`<dl class="facts">${pairs.map(([name, content, width]) => markup`<div class="${width ?? 'narrow'}"><dt>${name}</dt><dd>${content}</dd></div>`)}</dl>`;
}

export const code = (text: string): Markup => markup`<code>${text}</code>`;

export const details = (summary: Content, body: Content): Markup =>
  markup`<details><summary>${summary}</summary>${body}</details>`;

/** A small label whose word, not only its colour, states what it means. */
export const badge = (word: string, tone: 'good' | 'bad' | 'warn' | 'quiet' | 'accent'): Markup =>
  markup`<span class="badge ${tone}">${word}</span>`;
