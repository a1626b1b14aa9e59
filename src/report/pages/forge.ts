import { formatBytes, formatMs, formatShare } from '../../base/text/quantity.js';
import type { ConversionResult } from '../../formats/precision/result.js';
import { decidedBy } from '../../quality/verify/headline.js';
import { code, type Figure, present, ring, type Section, strong, type Text } from '../blocks.js';
import { comparableRuns } from '../comparison/runs.js';
import { type ForgeResult, forgeResultSchema } from '../forge-result.js';
import {
  computedNodes,
  conversionSentence,
  decidingVerification,
  nameOfFile,
  nextOf,
  outcomeWord,
  runTitle,
} from '../sentences.js';
import { defineReport } from './report.js';
import { verificationSection } from './section/accuracy.js';
import { engineSection, layersSection, sizesSection } from './section/engine.js';
import { modelSection } from './section/model.js';
import { healSection, precisionSection } from './section/precision.js';
import { environmentSection, phasesSection, repeatSection } from './section/run.js';
import { speedSection } from './section/speed.js';

/** The result's name in a run root. */
export const RESULT_FILE = 'report.json';

/** The report of `trtforge forge`. */
export const forgeReport = defineReport<ForgeResult>({
  source: 'forge',
  file: RESULT_FILE,
  result: forgeResultSchema,
  isRunRoot: true,
  compare: comparableRuns,
  page: (result) => ({
    name: nameOfFile(result.request.model),
    subtitle: runTitle(result),
    version: result.version,
    startedAt: result.startedAt,
    verdict: {
      ...result.verdict,
      word: outcomeWord[result.verdict.outcome],
      remedies: remediesOf(result.error, (result.error ?? result).issues),
      next: nextOf(result),
    },
    figures: figuresOf(result),
    sections: [
      ...modelSections(result),
      phasesSection(result),
      environmentSection(result.environment),
      repeatSection(result.repeat, result.files, result.runRoot),
    ],
    dataFile: RESULT_FILE,
  }),
});

/** The sections of one model; a run over several has these for each. */
export const modelSections = (result: ForgeResult): readonly Section[] =>
  present([
    result.verification && verificationSection('accuracy', 'Accuracy', result.verification),
    result.engineVerification &&
      verificationSection('engine-accuracy', 'Accuracy of the engine', result.engineVerification),
    speedSection(result),
    healSection(result),
    precisionSection(result),
    layersSection(result),
    sizesSection(result),
    modelSection(result),
    engineSection(result),
  ]);

type Failure = Pick<NonNullable<ForgeResult['error']>, 'remedy' | 'code' | 'exitCode'>;

/** The remedies of a failure, and the known issues that are not harmless. */
export const remediesOf = (
  failure: Failure | null,
  issues: NonNullable<ForgeResult['issues']> = [],
): readonly Text[] => [
  ...(failure === null
    ? []
    : [[strong('What to do:'), ` ${failure.remedy} `, code(failure.code), `, exit ${failure.exitCode}`]]),
  ...issues
    .filter(({ severity }) => severity !== 'note')
    .map(({ id, cause, remedy }) => [code(id), ` ${cause} ${remedy}`]),
];

function figuresOf(result: ForgeResult): readonly Figure[] {
  const { conversion, build, bench, totalMs } = result;
  return present([
    toleranceFigure(result),
    ...(conversion === null ? [] : conversionFigures(conversion)),
    build && { text: formatBytes(build.passport.plan.bytes), name: 'engine' },
    bench?.gpuMs ? { text: formatMs(bench.gpuMs.median), name: 'on the GPU' } : null,
    { text: formatMs(totalMs), name: 'whole run' },
  ]);
}

/** The comparison that the verdict is about; none where no limit decided. */
function toleranceFigure(result: ForgeResult): Figure | null {
  const judged = decidingVerification(result);
  const decided = judged && decidedBy(judged);
  if (!decided?.isLimit) return null;
  const { output, severity: share, text } = decided;
  const tone = output.outcome === 'fail' ? 'bad' : share > 0.8 ? 'warn' : 'good';
  const used = share < 9.995 ? `${Math.ceil(share * 100)}%` : Number.isFinite(share) ? '>10×' : '∞';
  const description = `${output.name}: ${text}.`;
  return ring(share, tone, used, 'of the tolerance used', description);
}

function conversionFigures(conversion: ConversionResult): readonly (Figure | null)[] {
  const { kinds, label, share } = computedNodes(conversion);
  const { before, after } = conversion.bytes;
  const left = after / before;
  const size = `The converted model is ${formatShare(left)} of the size of the original.`;
  return [
    ring(
      share,
      'accent',
      `${Math.floor(share * 100)}%`,
      `of ${kinds.map(({ kind }) => `${kind}s`).join(' and ')} in ${label}`,
      conversionSentence(conversion),
    ),
    before === 0 ? null : ring(left, 'accent', `${Math.round(left * 100)}%`, 'of the ONNX size left', size),
  ];
}
