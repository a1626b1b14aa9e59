import { formatBytes, formatCount, formatMs, plural } from '../../../base/text/quantity.js';
import { markup } from '../../../report/markup.js';
import { badge, type SectionFacts, table } from '../../../report/parts.js';
import { precisionWord } from '../../../report/sentences.js';
import type { BundleReport, ComponentReport } from '../report-schema.js';
import { componentsSentence, shapeText } from './sentences.js';

const tones = {
  built: 'good',
  kept: 'good',
  local: 'good',
  remote: 'good',
  earlier: 'quiet',
  failed: 'bad',
  'not-reached': 'quiet',
} as const;

const cacheWords = {
  none: 'none',
  new: 'new',
  hit: 'used again',
  rejected: 'rejected',
} as const;

/** Every component with what its build came to, its profile, and what the builder warned of. */
export function componentsSection(report: BundleReport): SectionFacts | null {
  const { components, warnings } = report;
  if (components.length === 0 && warnings.length === 0) return null;
  return {
    id: 'components',
    title: 'Components',
    lead:
      components.length === 0
        ? 'The run stopped before it knew the components.'
        : componentsSentence({ ...report, gpu: report.env.gpu }),
    body: [
      components.length > 0 && buildTable(components),
      components.some(({ profile }) => Object.keys(profile.opt).length > 0) && profileTable(components),
      warningList(report),
    ],
  };
}

const buildTable = (components: readonly ComponentReport[]) =>
  table(
    'Every component of the bundle',
    [
      { title: 'component' },
      { title: 'status' },
      { title: 'precision' },
      { title: 'engine', numeric: true },
      { title: 'build', numeric: true },
      { title: 'layers', numeric: true },
      { title: 'timing cache' },
      { title: 'peak memory', numeric: true },
    ],
    components.map((one) => [
      one.component,
      badge(one.status.replace('-', ' '), tones[one.status]),
      precisionWord(one.precision),
      one.engine_bytes === null ? '–' : formatBytes(one.engine_bytes),
      one.status === 'built' && one.timings_sec.build !== null ? formatMs(one.timings_sec.build * 1000) : '–',
      one.layers === null ? '–' : formatCount(one.layers),
      one.timing_cache_state === null ? '–' : cacheWords[one.timing_cache_state],
      one.peak_memory_bytes === null ? '–' : formatBytes(one.peak_memory_bytes),
    ]),
  );

const profileTable = (components: readonly ComponentReport[]) =>
  table(
    'Shapes that the engines take',
    [{ title: 'component' }, { title: 'input' }, { title: 'min' }, { title: 'opt' }, { title: 'max' }],
    components.flatMap(({ component, profile }) =>
      Object.keys(profile.opt).map((input) => [
        component,
        input,
        ...(['min', 'opt', 'max'] as const).map((end) => shapeText(profile[end][input] ?? [])),
      ]),
    ),
  );

function warningList({ warnings, components }: BundleReport) {
  const said = [
    ...warnings,
    ...components.flatMap((one) => one.warnings.map((warning) => `${one.component}: ${warning}`)),
  ];
  return (
    said.length > 0 &&
    markup`<ul class="findings">${said.map((warning) => markup`<li>${badge('warning', 'warn')} ${warning}</li>`)}</ul>`
  );
}

/** Where the meta file and the models contradict each other; nothing is built from such a bundle. */
export function mismatchSection({ mismatches, meta }: BundleReport): SectionFacts | null {
  if (mismatches.length === 0) return null;
  return {
    id: 'mismatches',
    title: 'Contradictions',
    lead: `${meta} and the models contradict each other in ${plural(mismatches.length, 'place')}; nothing is built from such a bundle.`,
    body: table(
      'What contradicts what',
      [{ title: 'component' }, { title: 'tensor' }, { title: 'contradiction' }],
      mismatches.map(({ component, tensor, message }) => [component, tensor ?? '–', message]),
    ),
  };
}
