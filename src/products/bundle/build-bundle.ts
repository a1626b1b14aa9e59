import { removeIfThere } from '../../base/files/files.js';
import { publishFile } from '../../base/files/publish.js';
import { protectingInputs } from '../../base/files/user-files.js';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import { ignoreEvents } from '../../events.js';
import { reportOf } from './build-report.js';
import type { BundleContext, BundleRequest } from './bundle-request.js';
import { BundleRun } from './bundle-run.js';
import type { BundleReport } from './report-schema.js';

/**
 * Builds every component of a bundle that its meta file describes, runs each once, and decodes through all of them to see that they still decide the same.
 *
 * ```ts
 * const { outcome, components } = await buildBundle({ meta: 'out/model_meta.json', outdir: 'engines', precision: 'fp16' });
 * ```
 * Writes `COMPONENT.engine` with its passport, `build_logs/` and `build_report.json`; the report also when the run fails, which is then in `failure`, unless nothing was begun because the
 * request is wrong, or no engine changed where a report of a finished run lies: then `report` is null. `forgeBundle` does this and writes the report as pages too.
 * Throws only when it cannot begin: TF_WRITE_FAILED, and TF_USAGE for components that the bundle does not have.
 */
export async function buildBundle(request: BundleRequest, given: BundleContext = {}): Promise<BundleReport> {
  return protectingInputs([request.meta, request.profilesFile], () => build(request, given));
}

async function build(request: BundleRequest, given: BundleContext): Promise<BundleReport> {
  const { emit = ignoreEvents, environment = process.env, signal } = given;
  const started = new Date();
  const run = new BundleRun(request, given, { emit, environment, signal });
  let failure: TrtforgeError | undefined;
  try {
    await run.go();
  } catch (thrown) {
    failure = knownError(thrown);
    if (failure.code === 'TF_USAGE') throw failure;
  } finally {
    if (request.keepTemp !== true) removeIfThere(run.temporary);
  }
  const report = reportOf(run, failure, {
    started,
    finished: new Date(),
    stagingKept: request.keepTemp === true,
  });
  if (report.report !== null) writeReport(report.report, report, failure);
  return report;
}

/** A disk that is full when the run fails is full for the report too: then the failure itself is what matters. */
function writeReport(path: string, report: BundleReport, failure: TrtforgeError | undefined): void {
  try {
    publishFile(path, `${JSON.stringify(report, null, 2)}\n`);
  } catch (error) {
    throw failure ?? error;
  }
}

function knownError(thrown: unknown): TrtforgeError {
  if (thrown instanceof TrtforgeError) return thrown;
  const what = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  const code = systemErrorCode(thrown);
  return new TrtforgeError(
    'TF_INTERNAL',
    `trtforge itself failed${code === undefined ? '' : ` (${code})`}: ${what}`,
    { cause: thrown },
  );
}
