import { streamingIssues } from '../../../products/streaming/known-issues.js';
import { installationIssues } from './installation.js';
import type { KnownIssue } from './issue.js';
import { memoryIssues } from './memory.js';
import { parsingIssues } from './parsing.js';
import { planIssues } from './plans.js';
import { precisionIssues } from './precision.js';
import { runningIssues } from './running.js';
import { shapeIssues } from './shapes.js';

/** All of them. The order decides where two match one line: the first, more special one wins. */
export const knownIssues: readonly KnownIssue[] = [
  ...memoryIssues,
  ...installationIssues,
  ...planIssues,
  ...shapeIssues,
  ...parsingIssues,
  ...precisionIssues,
  ...streamingIssues,
  ...runningIssues,
];
