import { relative } from 'node:path';
import { formatBytes, formatMs } from '../../../base/text/quantity.js';
import { type Content, type Markup, markup } from '../../../report/markup.js';
import { page } from '../../../report/page.js';
import type { SectionFacts } from '../../../report/parts.js';
import type { ForgeResult } from '../../../report/result.js';
import { environmentSection, repeatSection } from '../../../report/section/environment.js';
import { phasesSection } from '../../../report/section/phases.js';
import {
  type DialItem,
  dialList,
  knownIssues,
  readableTime,
  verdictBanner,
} from '../../../report/section/verdict.js';
import type { BundleReport } from '../report-schema.js';
import { chainSections } from './chain.js';
import { componentSection, componentsSection, mismatchSection, smokeSection } from './components.js';
import { agreementShare, bundleName, bundleTitle, bundleVerdict, isoTime, timedPhases } from './sentences.js';

const sectionsOf = (report: BundleReport): readonly (SectionFacts | null)[] => [
  mismatchSection(report),
  componentsSection(report),
  ...chainSections(report),
  smokeSection(report),
  ...report.components.map(componentSection),
  phasesSection(timedPhases(report)),
  environmentSection(report),
  repeatSection({ repeat: report.repeat, files: filesOf(report), runRoot: report.outdir }),
];

/** What the folder holds, by its path in there. */
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

/** The report of a bundle as one HTML file that needs no network and no script. The report itself is inside as JSON, under the id `result`. */
export function renderBundleHtml(report: BundleReport): string {
  return page({
    title: `${bundleName(report)}: ${bundleVerdict(report).word.toLowerCase()} · trtforge`,
    version: report.version,
    header: header(report),
    sections: sectionsOf(report).filter((facts) => facts !== null),
    dataBeside: ' and beside it as build_report.json',
    result: report,
  });
}

function header(report: BundleReport): Markup {
  const started = isoTime(report.started_utc);
  return markup`<header><p class="kicker">trtforge ${report.version} · bundle · <time datetime="${started}">${readableTime(started)}</time></p><h1>${bundleName(report)}</h1><p class="subtitle">${bundleTitle(report)}</p>${verdictBanner(bundleVerdict(report), whatToDo(report))}${dials(report)}</header>`;
}

function whatToDo({ failure, exitCode }: BundleReport): Content {
  if (failure === null) return null;
  return markup`<p class="remedy"><strong>What to do:</strong> ${failure.remedy} <code>${failure.code}</code>, exit ${exitCode}</p>${knownIssues(failure.issues ?? [])}`;
}

/** The last check is the nearest to what is deployed: the engines', where there was a GPU. */
function dials(report: BundleReport): Markup {
  const check = report.checks.at(-1);
  const agreeing: readonly (readonly [string, number])[] =
    check === undefined
      ? []
      : [
          ['tokens', check.token_agreement],
          ['durations', check.duration_agreement],
        ];
  const rings = agreeing.map(([what, count]): DialItem => {
    const share = check === undefined ? 0 : agreementShare(count, check);
    return {
      text: {
        id: `dial-${what}`,
        title: `Agreement of ${what}`,
        description: `${count} of ${check?.decisions ?? 0} decisions have the same ${what}.`,
      },
      share,
      figure: `${Math.floor(share * 100)}%`,
      tone: share === 1 ? 'good' : check?.outcome === 'pass' ? 'warn' : 'bad',
      caption: `of ${what} agree`,
    };
  });
  const engines = report.components.reduce((sum, { engine_bytes }) => sum + (engine_bytes ?? 0), 0);
  const builds = report.components.filter(({ status }) => status === 'built');
  return dialList(rings, [
    ...(engines === 0 ? [] : [['of engines', formatBytes(engines)] as const]),
    ...(builds.length === 0
      ? []
      : [
          [
            builds.length === 1 ? 'one build' : `${builds.length} builds, summed`,
            formatMs(builds.reduce((sum, { timings_sec }) => sum + (timings_sec.build ?? 0), 0) * 1000),
          ] as const,
        ]),
    ['whole run', formatMs(report.total_sec * 1000)],
  ]);
}
