import type { ExplainedIssue } from './explained-issue.js';

const RANK = { error: 0, warning: 1, note: 2 } as const;

/** The worst first; equals stay as they came. Apart from the schema of issues, since every command loads this and few load zod. */
export const inOrder = (issues: readonly ExplainedIssue[]): ExplainedIssue[] =>
  issues.toSorted((one, other) => RANK[one.severity] - RANK[other.severity]);
