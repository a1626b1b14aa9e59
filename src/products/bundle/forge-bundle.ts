import { join } from 'node:path';
import { removeIfAllowed } from '../../base/files/files.js';
import { publishFile } from '../../base/files/publish.js';
import { protectingInputs } from '../../base/files/user-files.js';
import { type ErrorCode, TrtforgeError } from '../../errors.js';
import { ignoreEvents, inPhase } from '../../events.js';
import { picturesOf, renderReport } from '../../report/pages/report.js';
import { REPORT_FILE, reportOf } from './build-report.js';
import { BundleRun } from './bundle-run.js';
import type { BundleContext, BundleRequest } from './options.js';
import { bundleReport } from './report/page.js';
import type { BundleFailure, BundleReport } from './result.js';

/**
 * Builds every component of a bundle that its meta file describes, each as a run of forge's phases, runs each once, and decodes through all of them to see
 * that they still decide the same.
 *
 * ```ts
 * const { outcome, components } = await forgeBundle({ meta: 'out/model_meta.json', outdir: 'engines', precision: 'fp16', check: { samples: 4 } });
 * ```
 * Writes `COMPONENT.engine` with its passport, `build_logs/`, `build_report.json`, and `report.html` and `report.md` beside it; the report also when the run
 * fails, which is then in `failure`, unless nothing was begun because the request is wrong, or no engine changed where the report of a finished run is: then
 * `report` is null. Throws only when it cannot begin: TF_WRITE_FAILED, and TF_USAGE for components that the bundle does not have.
 */
export async function forgeBundle(
  request: BundleRequest,
  context: BundleContext = {},
): Promise<BundleReport> {
  return protectingInputs([request.meta, request.profilesFile], () => forge(request, context));
}

async function forge(request: BundleRequest, context: BundleContext): Promise<BundleReport> {
  const started = new Date();
  const run = new BundleRun(request, context);
  try {
    await run.decide();
    await run.make();
  } finally {
    if (request.keepTemp !== true && run.temporary !== null) removeIfAllowed(run.temporary);
  }
  if (run.stop?.error.code === 'TF_USAGE') throw errorOf(run.stop.error);
  const report = reportOf(run, { started, finished: new Date() });
  if (report.report !== null)
    await inPhase('report', context.emit ?? ignoreEvents, async () => writeReport(report));
  return report;
}

export const errorOf = ({ code, message, remedy }: Pick<BundleFailure, 'code' | 'message' | 'remedy'>) =>
  new TrtforgeError(code as ErrorCode, message, { remedy });

/** A disk that is full when the run fails is full for the report too: then the failure itself is what matters, and more than a page that is not written. */
async function writeReport(report: BundleReport): Promise<void> {
  const { outdir, failure } = report;
  try {
    publishFile(join(outdir, REPORT_FILE), `${JSON.stringify(report, null, 2)}\n`);
  } catch (error) {
    throw failure === null ? error : errorOf(failure);
  }
  try {
    for (const format of ['markdown', 'html'] as const) {
      const rendered = { kind: bundleReport, result: report };
      const pictures = await picturesOf(rendered, format);
      const { name, content } = renderReport(rendered, format, [], pictures);
      publishFile(join(outdir, name), content);
    }
  } catch (error) {
    if (failure === null || !(error instanceof TrtforgeError)) throw error;
  }
}
