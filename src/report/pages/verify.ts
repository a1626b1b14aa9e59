import { plural } from '../../base/text/quantity.js';
import { verifyHeadline } from '../../quality/verify/headline.js';
import {
  type CompareResult,
  compareResultSchema,
  type VerifyResult,
  verifyResultSchema,
} from '../../quality/verify/result.js';
import { packageVersion } from '../../version.js';
import { code, facts, labelled, present } from '../blocks.js';
import { comparableVerifications } from '../comparison/runs.js';
import { nameOfFile, outcomeWord } from '../sentences.js';
import { defineReport } from './report.js';
import { errorBlocks, verificationSection } from './section/accuracy.js';
import { repeatSection } from './section/run.js';

/** The report of `trtforge verify`. */
export const verifyReport = defineReport<VerifyResult>({
  source: 'verify',
  file: 'verify.json',
  result: verifyResultSchema,
  compare: comparableVerifications,
  page: (result) => ({
    name: nameOfFile(result.candidate),
    subtitle: `against ${result.reference}`,
    kind: 'verify',
    version: packageVersion(),
    verdict: {
      outcome: result.outcome,
      word: outcomeWord[result.outcome],
      headline: verifyHeadline(result),
      reasons: result.reasons,
      remedies: result.next === undefined ? [] : [result.next.message],
      next: present([result.next?.command ?? null, result.next?.bisect ?? null]),
    },
    sections: [verificationSection('accuracy', 'Accuracy', result), repeatSection(result.repeat)],
  }),
});

/** The report of `trtforge compare`. */
export const compareReport = defineReport<CompareResult>({
  source: 'compare',
  file: 'compare.json',
  result: compareResultSchema,
  page: (result) => {
    const { outputs, outcome, candidate, reference, runs } = result;
    const failed = outputs.filter((output) => output.outcome === 'fail').length;
    const headline = `${plural(outputs.length, 'output')} compared over ${plural(runs, 'run')}; ${failed === 0 ? 'none fails' : `${failed} ${failed === 1 ? 'fails' : 'fail'}`}.`;
    const side = ({ path, format, runner, unmatched }: CompareResult['candidate']) => [
      code(path),
      ` (${[format, ...(runner === null ? [] : [runner])].join(', ')})`,
      unmatched.length === 0 ? '' : `; outputs of this side only: ${unmatched.join(', ')}`,
    ];
    return {
      name: nameOfFile(candidate.path),
      subtitle: `against ${reference.path}`,
      kind: 'compare',
      version: packageVersion(),
      verdict: {
        outcome,
        word: outcomeWord[outcome],
        headline,
        reasons: result.reasons,
      },
      sections: [
        {
          id: 'accuracy',
          title: 'Accuracy',
          lead: headline,
          blocks: [
            facts([
              ['judged', side(candidate)],
              ['reference', side(reference)],
            ]),
            labelled('warning', 'warn', result.warnings),
            ...errorBlocks({ ...result, samples: runs }),
          ],
        },
        repeatSection(result.repeat),
      ],
    };
  },
});
