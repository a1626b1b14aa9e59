import type { z } from 'zod';
import type { Chart } from '../chart/frame.js';
import type { Comparable } from '../comparison/result.js';
import type { RunOf } from '../result.js';
import type { Page, Section } from '../section.js';

/** One kind of result that is rendered as a report: a run of forge, a bundle. */
export interface ReportKind<R = unknown> {
  /** The command that makes such a result, for messages: `forge`. */
  readonly source: string;
  /** Its name in the folder that the command writes. */
  readonly file: string;
  /** Its `schema` is what a file of this kind names: `trtforge.forge/2`. */
  readonly result: z.ZodType<R> & { readonly shape: { readonly schema: z.ZodLiteral<string> } };
  /** Its folder is a run root, where results of other commands lie too: sections of them are shown before the phases. */
  readonly isRunRoot?: true;
  /** The page that shows it. */
  page(result: R): Page;
  /** Several of them side by side, where a kind can be compared. */
  readonly compare?: Comparable<R>;
  /** The chart that `--format svg` writes; null where this result has none. */
  readonly chart?: (result: R) => Chart | null;
}

/** A product's sections on its results in the run root of another command, or in two that are compared; `result` is that command's. */
export type RunRootSections = (runs: readonly RunOf<unknown>[]) => readonly Section[];

/** Types a kind by its own result, then forgets it so that kinds fit one list. */
export const defineReport = <R>(kind: ReportKind<R>): ReportKind => kind as ReportKind;
