import { formatBytes, formatMs, plural } from '../../../base/text/quantity.js';
import { markup } from '../../../report/markup.js';
import { badge, code, facts, type SectionFacts, subsection, table } from '../../../report/parts.js';
import { engineSection, sizesSection } from '../../../report/section/engine.js';
import { modelSection } from '../../../report/section/model.js';
import { precisionSection } from '../../../report/section/precision.js';
import { precisionLabel } from '../../../report/sentences.js';
import type { BundleReport, ComponentReport, SmokeRun } from '../report-schema.js';
import { componentsSentence, shapeText, smokeSentence, statusTexts } from './sentences.js';

const tones = {
  built: 'good',
  kept: 'good',
  local: 'good',
  remote: 'good',
  earlier: 'quiet',
  failed: 'bad',
  'not-reached': 'quiet',
} as const;

/** Every component with the outcome of its build, and what there is to know of the bundle as a whole. */
export function componentsSection(report: BundleReport): SectionFacts | null {
  const { components, warnings } = report;
  if (components.length === 0 && warnings.length === 0) return null;
  return {
    id: 'components',
    title: 'Components',
    lead: componentsSentence(report),
    body: [
      components.length > 0 &&
        table(
          'Every component of the bundle',
          [
            { title: 'component' },
            { title: 'status' },
            { title: 'precision' },
            { title: 'engine', numeric: true },
            { title: 'build', numeric: true },
          ],
          components.map((one) => [
            one.component,
            badge(one.status.replace('-', ' '), tones[one.status]),
            precisionLabel(one.forge?.request.precision ?? '–'),
            one.engine_bytes === null ? '–' : formatBytes(one.engine_bytes),
            buildTime(one),
          ]),
        ),
      findings('warning', warnings),
    ],
  };
}

/** Only a build of this run has a time. */
export const buildTime = ({ status, timings_sec }: ComponentReport): string =>
  status === 'built' && timings_sec.build !== null ? formatMs(timings_sec.build * 1000) : '–';

const findings = (word: string, texts: readonly string[]) =>
  texts.length > 0 &&
  markup`<ul class="findings">${texts.map((text) => markup`<li>${badge(word, 'warn')} ${text}</li>`)}</ul>`;

/** One component: its profile, warnings and digests, then the sections that the report of a forged model has. */
export function componentSection(one: ComponentReport, index: number): SectionFacts {
  const { component, status, forge, profile, warnings } = one;
  const scope = `component-${index + 1}-`;
  const sections = [engineSection, precisionSection, sizesSection, modelSection];
  return {
    id: `component-${index + 1}`,
    title: `Component: ${component}`,
    lead: `${component}: ${statusTexts[status]}${one.engine_bytes === null ? '' : `, ${formatBytes(one.engine_bytes)}`}.`,
    body: [
      findings('warning', warnings),
      Object.keys(profile.opt).length > 0 &&
        table(
          'Shapes that the engine takes',
          [{ title: 'input' }, { title: 'min' }, { title: 'opt' }, { title: 'max' }],
          Object.keys(profile.opt).map((input) => [
            input,
            ...(['min', 'opt', 'max'] as const).map((end) => shapeText(profile[end][input] ?? [])),
          ]),
        ),
      facts(fileRows(one)),
      forge !== null &&
        sections.flatMap((describe) => {
          const described = describe(forge, scope);
          return described === null ? [] : subsection(described);
        }),
    ],
  };
}

function fileRows(one: ComponentReport) {
  const { external_data: external } = one;
  const rows: readonly (readonly [string, string | null])[] = [
    ['ONNX', one.onnx],
    ['its SHA-256', one.onnx_sha256],
    [
      'external data',
      external && `${plural(external.files, 'file')}, ${formatBytes(external.bytes)}, ${external.sha256}`,
    ],
    ['SHA-256 of the engine', one.engine_sha256],
    ['target', one.forge?.request.target ?? null],
    ['build log', one.logs.build],
    ['smoke log', one.logs.smoke],
  ];
  return rows.flatMap(([name, text]) => (text === null ? [] : [[name, code(text), 'wide'] as const]));
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

/** What was run once, its outputs, and what was not done and why. */
export function smokeSection(report: BundleReport): SectionFacts | null {
  const { components, not_checked } = report;
  const ran = components.flatMap((one) => (one.smoke === null ? [] : [{ ...one, smoke: one.smoke }]));
  if (ran.length === 0 && not_checked.length === 0) return null;
  return {
    id: 'smoke',
    title: 'Smoke runs, and what was not done',
    lead: smokeSentence(report),
    body: [
      ran.length > 0 &&
        table(
          'What ran',
          [
            { title: 'component' },
            { title: 'what ran' },
            { title: 'on' },
            { title: 'took', numeric: true },
            { title: 'outputs' },
            { title: 'why not the engine' },
          ],
          ran.map(({ component, smoke }) => [
            component,
            badge(smoke.ran, smoke.ran === 'engine' ? 'good' : 'warn'),
            smoke.backend,
            formatMs(smoke.ms),
            smoke.outputs.map(outputText),
            smoke.instead ?? '',
          ]),
        ),
      findings('not done', not_checked),
    ],
  };
}

const outputText = ({ name, dtype, shape, finite }: SmokeRun['outputs'][number]) =>
  markup`<span class="check">${name} ${dtype} ${shapeText(shape)}${!finite && [' ', badge('not finite', 'bad')]}</span>`;
