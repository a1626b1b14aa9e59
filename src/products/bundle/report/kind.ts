import { defineReport } from '../../../report/kind.js';
import { checkedResult } from '../../../report/read.js';
import { REPORT_FILE } from '../build-report.js';
import { bundleReportSchema } from '../report-schema.js';
import { renderBundleMarkdown } from './markdown.js';
import { renderBundleHtml } from './page.js';

/** What `trtforge bundle build` and `bundle forge` write. */
export const bundleReport = defineReport({
  schema: 'trtforge.bundle/1',
  file: REPORT_FILE,
  parse: (json, path) => checkedResult(bundleReportSchema.safeParse(json), path, 'a bundle'),
  load: async () => ({ html: renderBundleHtml, markdown: renderBundleMarkdown }),
});
