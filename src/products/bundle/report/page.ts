import { relative } from 'node:path';
import { formatBytes, formatMs } from '../../../base/text/quantity.js';
import { type Figure, present, ring } from '../../../report/blocks.js';
import type { ForgeResult } from '../../../report/forge-result.js';
import { remediesOf } from '../../../report/pages/forge.js';
import { defineReport } from '../../../report/pages/report.js';
import { environmentSection, phasesSection, repeatSection } from '../../../report/pages/section/run.js';
import { REPORT_FILE } from '../build-report.js';
import { type BundleReport, bundleReportSchema } from '../result.js';
import { chainSection } from './chain.js';
import { comparableBundles } from './compare.js';
import { componentSection, componentsSection, mismatchSection, smokeSection } from './components.js';
import { agreementShare, bundleTitle, bundleVerdict, isoTime, timedPhases } from './sentences.js';

/** The report of `trtforge bundle build` and `bundle forge`: the facts of the bundle, then the report of each component. */
export const bundleReport = defineReport<BundleReport>({
  source: 'a bundle',
  file: REPORT_FILE,
  result: bundleReportSchema,
  isRunRoot: true,
  compare: comparableBundles,
  page: (report) => ({
    name: report.model_name ?? report.meta,
    subtitle: bundleTitle(report),
    kind: 'bundle',
    version: report.version,
    startedAt: isoTime(report.started_utc),
    verdict: {
      ...bundleVerdict(report),
      remedies: remediesOf(
        report.failure && { ...report.failure, exitCode: report.exitCode },
        report.failure?.issues,
      ),
    },
    figures: figuresOf(report),
    sections: [
      mismatchSection(report),
      componentsSection(report),
      ...report.checks.map(chainSection),
      smokeSection(report),
      ...report.components.map(componentSection),
      phasesSection(timedPhases(report)),
      environmentSection(report.environment),
      repeatSection(report.repeat, filesOf(report), report.outdir),
    ],
    dataFile: REPORT_FILE,
  }),
});

/** The files of the folder, by their path in there. */
function filesOf({ outdir, report, timing_cache, components }: BundleReport): ForgeResult['files'] {
  const all: readonly (readonly [string | null, string])[] = [
    [report, 'the result that this page is made of'],
    ...components.flatMap((one): readonly (readonly [string | null, string])[] => [
      [one.engine_bytes === null ? null : one.engine, `the engine of the ${one.component}`],
      [one.forge?.passport ?? null, 'its passport'],
      [one.logs.build, 'the log of its build'],
      [one.logs.smoke, 'the log of its smoke run'],
    ]),
    [timing_cache, "the builder's timing cache"],
  ];
  return all.flatMap(([path, what]) => (path === null ? [] : [{ path: relative(outdir, path), what }]));
}

/** The last check is the nearest to what is deployed: the engines', where there was a GPU. */
function figuresOf({ checks, components, total_sec }: BundleReport): readonly Figure[] {
  const check = checks.at(-1);
  const agreement = (what: string, count: number): Figure | null => {
    if (check === undefined) return null;
    const share = agreementShare(count, check);
    const tone = share === 1 ? 'good' : check.outcome === 'pass' ? 'warn' : 'bad';
    const description = `${count} of ${check.decisions} decisions have the same ${what}.`;
    return ring(share, tone, `${Math.floor(share * 100)}%`, `of ${what} agree`, description);
  };
  const engines = components.reduce((sum, { engine_bytes }) => sum + (engine_bytes ?? 0), 0);
  const builds = components.filter(({ status }) => status === 'built');
  const buildMs = builds.reduce((sum, { timings_sec }) => sum + (timings_sec.build ?? 0), 0) * 1000;
  return present([
    agreement('tokens', check?.token_agreement ?? 0),
    agreement('durations', check?.duration_agreement ?? 0),
    engines === 0 ? null : { text: formatBytes(engines), name: 'of engines' },
    builds.length === 0
      ? null
      : {
          text: formatMs(buildMs),
          name: builds.length === 1 ? 'one build' : `${builds.length} builds, summed`,
        },
    { text: formatMs(total_sec * 1000), name: 'whole run' },
  ]);
}
