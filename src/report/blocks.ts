import type { WorstSample } from '../quality/verify/result.js';
import type { Chart, Tone } from './chart/frame.js';
import type { Outcome } from './forge-result.js';

/** The parts of a report, as data, and the sections that every run has. `html.ts` and `pages/markdown.ts` render them. Text is escaped there; nothing here is HTML or Markdown. */

/** The report of one result. */
export interface Page {
  /** Whose report it is, the heading. */
  readonly name: string;
  readonly subtitle: string;
  /** Which kind of result, for the line above the heading; absent for that of `forge`. */
  readonly kind?: string;
  /** Of trtforge. */
  readonly version: string;
  /** ISO 8601; absent where the result has none. */
  readonly startedAt?: string;
  readonly verdict: PageVerdict;
  /** The few numbers that people ask for first. Sections have them too: only HTML draws these. */
  readonly figures?: readonly Figure[];
  readonly sections: readonly (Section | null)[];
  /** The file beside the page that has the data; absent where only the page has it. */
  readonly dataFile?: string;
}

export interface PageVerdict {
  readonly outcome: Outcome;
  readonly word: string;
  readonly headline: string;
  readonly reasons: readonly string[];
  /** Remedies, and known issues. */
  readonly remedies?: readonly Text[];
  /** Command lines that go on from here. */
  readonly next?: readonly string[];
}

/** A number and what it is; with a share of one it is drawn as a ring. */
export interface Figure {
  readonly text: string;
  readonly name: string;
  readonly ring?: { readonly share: number; readonly tone: Tone; readonly description: string };
}

export interface Section {
  /** Unique in its page, or in the section that it is a part of; target of links. */
  readonly id: string;
  readonly title: string;
  /** The section's finding in one or two sentences; a reader in a hurry reads only these. */
  readonly lead: string;
  readonly blocks: Blocks;
}

/** Builders return null for a block that would be empty. */
export type Blocks = readonly (Block | null)[];

export type Block =
  | { readonly kind: 'facts'; readonly facts: readonly (readonly [string, Text])[] }
  | {
      readonly kind: 'table';
      readonly caption: string;
      readonly columns: readonly Column[];
      readonly rows: readonly (readonly Text[])[];
      /** Cells of one kind by two names: a phone shows them as tiles below the name of their row. */
      readonly isMap: boolean;
    }
  | { readonly kind: 'list'; readonly items: readonly Item[] }
  | { readonly kind: 'note'; readonly text: Text }
  | { readonly kind: 'charts'; readonly charts: readonly CaptionedChart[] }
  | { readonly kind: 'samples'; readonly samples: readonly WorstSample[] }
  | { readonly kind: 'command'; readonly command: string }
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'fold'; readonly title: string; readonly blocks: Blocks }
  | { readonly kind: 'part'; readonly section: Section };

/** Plain text, or text with a meaning that shows. */
export type Text = string | Mark | readonly Text[];

type Mark =
  | { readonly mark: 'code' | 'strong' | 'muted'; readonly text: string }
  | { readonly mark: 'badge'; readonly text: string; readonly tone: Tone }
  | { readonly mark: 'heat'; readonly text: string; readonly share: number }
  | { readonly mark: 'lines'; readonly lines: readonly Text[] };

/** Numbers are set flush right with even digits. */
type Column = string | { readonly number: string };

/** An entry of a list; one with entries of its own is folded in HTML, and names the first few in Markdown. */
export interface Item {
  readonly label?: { readonly text: string; readonly tone: Tone };
  readonly text: Text;
  readonly note?: string;
  readonly items?: readonly Item[];
}

interface CaptionedChart {
  readonly chart: Chart;
  readonly caption: Text;
}

/** Names and their values; a value of null is left out. */
export function facts(pairs: readonly (readonly [string, Text | null])[]): Block | null {
  const known = pairs.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
  return known.length === 0 ? null : { kind: 'facts', facts: known };
}

/** The first cell of a row is the row's heading. */
export const table = (
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly Text[])[],
  isMap = false,
): Block | null => (rows.length === 0 ? null : { kind: 'table', caption, columns, rows, isMap });

export const numbers = (...titles: readonly string[]): readonly Column[] =>
  titles.map((number) => ({ number }));

export const list = (items: readonly Item[]): Block | null =>
  items.length === 0 ? null : { kind: 'list', items };

/** A list whose entries have the same label: warnings, what was not done. */
export const labelled = (label: string, tone: Tone, texts: readonly string[]): Block | null =>
  list(texts.map((text) => ({ label: { text: label, tone }, text })));

/** A number that is a share of one: above one the ring is full. */
export const ring = (share: number, tone: Tone, text: string, name: string, description: string): Figure => ({
  text,
  name,
  ring: { share, tone, description },
});

export const note = (...text: readonly Text[]): Block => ({ kind: 'note', text });

/** Charts beside one another. Markdown prints their titles and descriptions. */
export const charts = (...all: readonly CaptionedChart[]): Block | null =>
  all.length === 0 ? null : { kind: 'charts', charts: all };

/** Pictures with what both sides state of them, beside one another; Markdown has a table. */
export const samples = (worst: readonly WorstSample[]): Block | null =>
  worst.length === 0 ? null : { kind: 'samples', samples: worst };

export const command = (line: string): Block => ({ kind: 'command', command: line });

export const json = (value: unknown): Block => ({ kind: 'json', value });

/** Blocks for readers who want to know how: closed in HTML, left out of Markdown. */
export const fold = (title: string, ...blocks: Blocks): Block => ({ kind: 'fold', title, blocks });

/** A section within a section. */
export const part = (section: Section): Block => ({ kind: 'part', section });

export const code = (text: string): Mark => ({ mark: 'code', text });
export const strong = (text: string): Mark => ({ mark: 'strong', text });
export const muted = (text: string): Mark => ({ mark: 'muted', text });
/** A small label whose word, not only its colour, states what it means. */
export const badge = (text: string, tone: Tone): Mark => ({ mark: 'badge', text, tone });
/** A figure, the stronger shaded the larger its share of one. */
export const heat = (text: string, share: number): Mark => ({ mark: 'heat', text, share });
/** Several lines of one table cell. */
export const lines = (all: readonly Text[]): Mark => ({ mark: 'lines', lines: all });

export const present = <T>(all: readonly (T | null)[]): readonly T[] => all.filter((each) => each !== null);
