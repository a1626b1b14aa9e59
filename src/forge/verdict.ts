import { ExitCode } from '../errors.js';
import type { ForgeResult, ReportPhase, ReportVerification } from '../report/result.js';
import { formatMeasure } from '../report/sentences.js';

export interface Judged {
  readonly error: ForgeResult['error'];
  readonly verification: ReportVerification | null;
  readonly build: ForgeResult['build'];
  readonly phases: readonly ReportPhase[];
}

export interface Judgement {
  readonly verdict: ForgeResult['verdict'];
  readonly exitCode: ForgeResult['exitCode'];
}

/** In this order: an error that stopped the run, a comparison that failed, one that could not tell, then what was really checked. */
export function judge(run: Judged): Judgement {
  if (run.error !== null) return stopped(run.error);
  const { verification } = run;
  if (verification !== null && verification.outcome !== 'pass') return notPassed(verification);
  const reasons = skippedReasons(run.phases);
  if (verification === null)
    return {
      verdict: {
        outcome: run.build === null ? 'inconclusive' : 'pass',
        headline:
          run.build === null
            ? 'No engine was asked for and nothing was compared.'
            : 'The engine was built; its numbers were not compared with anything.',
        reasons,
      },
      exitCode: run.build === null ? ExitCode.inconclusive : ExitCode.pass,
    };
  return {
    verdict: {
      outcome: 'pass',
      headline:
        run.build === null
          ? 'The typed model agrees with the original on every output.'
          : 'The typed model agrees with the original on every output, and the engine was built from it.',
      reasons,
    },
    exitCode: ExitCode.pass,
  };
}

function stopped(error: NonNullable<ForgeResult['error']>): Judgement {
  return {
    verdict: {
      outcome: error.exitCode === ExitCode.failed ? 'fail' : 'inconclusive',
      headline: `The run stopped in its phase ${error.phase}.`,
      reasons: [error.message],
    },
    exitCode: error.exitCode,
  };
}

function notPassed(verification: ReportVerification): Judgement {
  const failed = verification.outputs.filter((output) => !output.pass);
  const fail = verification.outcome === 'fail';
  const checks = failed.flatMap((output) =>
    output.checks
      .filter((check) => !check.pass)
      .map(
        (check) =>
          `${output.name}: ${check.statistic} error ${formatMeasure(check.measured)} is above its limit ${check.limit}.`,
      ),
  );
  return {
    verdict: {
      outcome: verification.outcome,
      headline: fail
        ? `${failed.length} of ${verification.outputs.length} outputs of the typed model ${failed.length === 1 ? 'is' : 'are'} outside tolerance.`
        : 'The comparison could not tell whether the typed model agrees with the original.',
      reasons: [...checks, ...verification.reasons.filter((reason) => !checks.includes(reason))],
    },
    exitCode: fail ? ExitCode.failed : ExitCode.inconclusive,
  };
}

/** What a pass does not cover, said beside it: steps with the same reason together. */
function skippedReasons(phases: readonly ReportPhase[]): string[] {
  const byReason = new Map<string, string[]>();
  for (const { name, status, detail } of phases) {
    if (status === 'skipped') byReason.set(detail, [...(byReason.get(detail) ?? []), name]);
  }
  return [...byReason].map(([reason, names]) => `Not done: ${names.join(', ')}, because ${reason}.`);
}
