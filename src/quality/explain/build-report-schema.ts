import { z } from 'zod';
import { buildResultSchema } from '../../engines/store/build-result-schema.js';
import { explainedIssueSchema } from './explained-issue.js';

/** What `trtforge build` gives, with the known issues that the build's lines show although it passed. */
export const buildReportSchema = buildResultSchema.extend({ issues: z.array(explainedIssueSchema) });

export type BuildReport = z.infer<typeof buildReportSchema>;
