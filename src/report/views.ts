import { REPORT_FILE } from '../products/bundle/build-report.js';
import { renderBundleMarkdown } from '../products/bundle/report/markdown.js';
import { renderBundleHtml } from '../products/bundle/report/page.js';
import type { BundleReport } from '../products/bundle/report-schema.js';
import { renderHtml } from './html.js';
import { renderMarkdown } from './markdown.js';
import { RESULT_FILE } from './read.js';
import type { ForgeResult, RenderedReport } from './result.js';

interface View {
  /** The name that forge gives it in its folder. */
  readonly name: string;
  render(): string;
}

/** What the result of a run, of a model or of a bundle, is written as. */
export function viewsOf(
  result: ForgeResult | BundleReport,
): Readonly<Record<RenderedReport['format'], View>> {
  const isBundle = result.schema === 'trtforge.bundle/1';
  return {
    html: {
      name: 'report.html',
      render: () => (isBundle ? renderBundleHtml(result) : renderHtml(result)),
    },
    markdown: {
      name: 'report.md',
      render: () => (isBundle ? renderBundleMarkdown(result) : renderMarkdown(result)),
    },
    json: {
      name: isBundle ? REPORT_FILE : RESULT_FILE,
      render: () => `${JSON.stringify(result, null, 2)}\n`,
    },
  };
}
