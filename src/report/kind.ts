/** One kind of result that is rendered as a report: a run of forge, a bundle. */
export interface ReportKind<R = unknown> {
  /** `trtforge.forge/2`: which kind a file is. */
  readonly schema: string;
  /** Its name in the folder that the command writes. */
  readonly file: string;
  /** Checks what was read; `path` is for the message. Throws TF_REPORT_INVALID. */
  parse(json: unknown, path: string): R;
  /** Loads what renders it. */
  load(): Promise<ReportViews<R>>;
}

export interface ReportViews<R = unknown> {
  html(result: R): string;
  markdown(result: R): string;
}

/** Types a kind by its own result, then forgets it so that kinds fit one list. */
export const defineReport = <R>(kind: ReportKind<R>): ReportKind => kind as ReportKind;
