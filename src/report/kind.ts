import type { z } from 'zod';
import type { Page } from './section.js';

/** One kind of result that is rendered as a report: a run of forge, a bundle. */
export interface ReportKind<R = unknown> {
  /** What makes such a result, for messages: `forge`. */
  readonly source: string;
  /** Its name in the folder that the command writes. */
  readonly file: string;
  /** Its `schema` is what a file of this kind names: `trtforge.forge/2`. */
  readonly result: z.ZodType<R> & { readonly shape: { readonly schema: z.ZodLiteral<string> } };
  /** What is shown of it. */
  page(result: R): Page;
}

/** Types a kind by its own result, then forgets it so that kinds fit one list. */
export const defineReport = <R>(kind: ReportKind<R>): ReportKind => kind as ReportKind;
