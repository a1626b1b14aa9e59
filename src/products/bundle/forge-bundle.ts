import { join } from 'node:path';
import { publishFile } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import { ignoreEvents, inPhase } from '../../events.js';
import { explaining } from '../../quality/explain/failure.js';
import { buildBundle } from './build-bundle.js';
import type { BundleContext, BundleRequest } from './bundle-request.js';
import { renderBundleMarkdown } from './report/markdown.js';
import { renderBundleHtml } from './report/page.js';
import type { BundleReport } from './report-schema.js';

/**
 * Builds a bundle as `buildBundle` does, holds failures against the known issues, and writes `report.html` and `report.md` beside `build_report.json`, also
 * when the bundle could not be built; where `buildBundle` writes no report, no pages either.
 *
 * ```ts
 * const { outcome, failure } = await forgeBundle({ meta: 'out/model_meta.json', outdir: 'engines', precision: 'fp16', check: { seed: 0, samples: 4 } });
 * ```
 * Throws only when it cannot begin: TF_WRITE_FAILED, and TF_USAGE for components that the bundle does not have.
 */
export async function forgeBundle(
  request: BundleRequest,
  context: BundleContext = {},
): Promise<BundleReport> {
  const report = await buildBundle(request, { explain: explaining, ...context });
  if (report.report !== null)
    await inPhase('report', context.emit ?? ignoreEvents, async () => writePages(report));
  return report;
}

/** Where the run itself failed, that matters more than a page that could not be written. */
function writePages(report: BundleReport): void {
  try {
    publishFile(join(report.outdir, 'report.md'), renderBundleMarkdown(report));
    publishFile(join(report.outdir, 'report.html'), renderBundleHtml(report));
  } catch (error) {
    if (report.failure === null || !(error instanceof TrtforgeError)) throw error;
  }
}
