import { formatBytes, formatMs, plural } from '../../../base/text/quantity.js';
import {
  badge,
  code,
  facts,
  labelled,
  lines,
  numbers,
  part,
  type Section,
  table,
} from '../../../report/blocks.js';
import { modelSections } from '../../../report/pages/forge.js';
import { precisionLabel } from '../../../report/sentences.js';
import type { BundleReport, ComponentReport } from '../result.js';
import { componentsSentence, smokeSentence, statusTexts } from './sentences.js';

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
export function componentsSection(report: BundleReport): Section | null {
  const { components, warnings } = report;
  if (components.length === 0 && warnings.length === 0) return null;
  return {
    id: 'components',
    title: 'Components',
    lead: componentsSentence(report),
    blocks: [
      table(
        'Every component of the bundle',
        ['component', 'status', 'precision', ...numbers('engine', 'build')],
        components.map((one) => [
          one.component,
          badge(statusTexts[one.status], tones[one.status]),
          precisionLabel(one.forge?.request.precision ?? '–'),
          one.engine_bytes === null ? '–' : formatBytes(one.engine_bytes),
          buildTime(one),
        ]),
      ),
      labelled('warning', 'warn', warnings),
    ],
  };
}

/** Only a build of this run has a time. */
const buildTime = ({ status, timings_sec }: ComponentReport): string =>
  status === 'built' && timings_sec.build !== null ? formatMs(timings_sec.build * 1000) : '–';

/** One component: its profile, warnings and digests, then what the report of a forged model has of it. */
export function componentSection(one: ComponentReport, index: number): Section {
  const { component, status, forge, profile, warnings, external_data: external } = one;
  return {
    id: `component-${index + 1}`,
    title: `Component: ${component}`,
    lead: `${component}: ${statusTexts[status]}${one.engine_bytes === null ? '' : `, ${formatBytes(one.engine_bytes)}`}.`,
    blocks: [
      labelled('warning', 'warn', warnings),
      table(
        'Shapes that the engine takes',
        ['input', 'min', 'opt', 'max'],
        Object.keys(profile.opt).map((input) => [
          code(input),
          ...(['min', 'opt', 'max'] as const).map((end) => shapeText(profile[end][input] ?? [])),
        ]),
      ),
      facts(
        [
          ['ONNX', one.onnx] as const,
          ['its SHA-256', one.onnx_sha256] as const,
          [
            'external data',
            external &&
              `${plural(external.files, 'file')}, ${formatBytes(external.bytes)}, ${external.sha256}`,
          ] as const,
          ['SHA-256 of the engine', one.engine_sha256] as const,
          ['target', one.forge?.request.target ?? null] as const,
          ['build log', one.logs.build] as const,
          ['smoke log', one.logs.smoke] as const,
        ].map(([name, text]) => [name, text === null ? null : code(text)]),
      ),
      ...(forge === null ? [] : modelSections(forge).map(part)),
    ],
  };
}

/** Where the meta file and the models contradict each other; nothing is built from such a bundle. */
export const mismatchSection = ({ mismatches, meta }: BundleReport): Section | null =>
  mismatches.length === 0
    ? null
    : {
        id: 'mismatches',
        title: 'Contradictions',
        lead: `${meta} and the models contradict each other in ${plural(mismatches.length, 'place')}; nothing is built from such a bundle.`,
        blocks: [
          table(
            'What contradicts what',
            ['component', 'tensor', 'contradiction'],
            mismatches.map(({ component, tensor, message }) => [
              component,
              tensor === null ? '–' : code(tensor),
              message,
            ]),
          ),
        ],
      };

/** The smoke runs, their outputs, and the checks that were not done and why. */
export function smokeSection(report: BundleReport): Section | null {
  const { components, not_checked } = report;
  const ran = components.flatMap(({ component, smoke }) => (smoke === null ? [] : [{ component, smoke }]));
  if (ran.length === 0 && not_checked.length === 0) return null;
  return {
    id: 'smoke',
    title: 'Smoke runs, and what was not done',
    lead: smokeSentence(report),
    blocks: [
      table(
        'What ran',
        ['component', 'what ran', 'on', ...numbers('took'), 'outputs', 'why not the engine'],
        ran.map(({ component, smoke }) => [
          component,
          badge(smoke.ran, smoke.ran === 'engine' ? 'good' : 'warn'),
          smoke.backend,
          formatMs(smoke.ms),
          lines(
            smoke.outputs.map(({ name, dtype, shape, finite }) => [
              `${name} ${dtype} ${shapeText(shape)}`,
              finite ? '' : [' ', badge('not finite', 'bad')],
            ]),
          ),
          smoke.instead ?? '',
        ]),
      ),
      labelled('not done', 'warn', not_checked),
    ],
  };
}

const shapeText = (shape: readonly number[]): string => (shape.length === 0 ? 'scalar' : shape.join('×'));
