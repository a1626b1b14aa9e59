import { installationIssues } from './installation.js';
import type { KnownIssue } from './issue.js';
import { memoryIssues } from './memory.js';
import { parsingIssues } from './parsing.js';
import { planIssues } from './plans.js';
import { precisionIssues } from './precision.js';
import { runningIssues } from './running.js';
import { shapeIssues } from './shapes.js';

/** Those of the core; products bring more. The order decides where two match one line: the first, more special one wins. */
export const knownIssues: readonly KnownIssue[] = [
  ...memoryIssues,
  ...installationIssues,
  ...planIssues,
  ...shapeIssues,
  ...parsingIssues,
  ...precisionIssues,
  ...runningIssues,
];
