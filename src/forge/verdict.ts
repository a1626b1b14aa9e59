import { formatMs, plural } from '../base/text/quantity.js';
import { ExitCode, outcomeExitCodes } from '../errors.js';
import { decisionsSentence, onSamples } from '../quality/verify/headline.js';
import type { VerifyResult } from '../quality/verify/result.js';
import type { ForgeResult, Heal, ReportPhase } from '../report/forge-result.js';
import { decidingVerification } from '../report/sentences.js';

export interface Judged {
  readonly error: ForgeResult['error'];
  readonly verification: ForgeResult['verification'];
  readonly engineVerification: ForgeResult['engineVerification'];
  readonly build: ForgeResult['build'];
  readonly phases: readonly ReportPhase[];
  readonly heal: ForgeResult['heal'];
}

export interface Judgement {
  readonly verdict: ForgeResult['verdict'];
  readonly exitCode: ForgeResult['exitCode'];
}

/** In this order: an error that stopped the run, a comparison that did not pass (the model's before the engine's), then what was really checked. */
export function judge(run: Judged): Judgement {
  if (run.error !== null) return stopped(run.error);
  const deciding = decidingVerification(run);
  const isOfEngine = deciding !== null && deciding === run.engineVerification;
  const open = run.heal && unhealed(run.heal, deciding?.outcome === 'pass');
  if (open !== null) return open;
  if (deciding !== null && deciding.outcome !== 'pass')
    return notPassed(deciding, isOfEngine ? 'engine' : 'typed model', run.heal);
  if (!isOfEngine && run.build?.wrongAnswer != null)
    return {
      verdict: {
        outcome: 'fail',
        headline: 'The engine does not give its known answer.',
        reasons: [run.build.wrongAnswer, ...skippedReasons(run.phases)],
      },
      exitCode: ExitCode.failed,
    };
  const outcome = deciding !== null ? 'pass' : run.build !== null ? 'built' : 'inconclusive';
  return {
    verdict: {
      outcome,
      headline: [
        headlineOf(deciding, run, isOfEngine),
        ...(run.heal === null ? [] : [healedText(run.heal)]),
      ].join(' '),
      reasons: skippedReasons(run.phases),
    },
    exitCode: outcomeExitCodes[outcome],
  };
}

function headlineOf(passed: VerifyResult | null, { build }: Judged, isOfEngine: boolean): string {
  if (passed === null)
    return build === null
      ? 'No engine was requested and nothing was compared.'
      : 'The engine was built, and not verified: nothing was compared with the original.';
  const what = isOfEngine ? 'The engine, run on its GPU,' : 'The typed model';
  const more = isOfEngine || build === null ? '' : ', and the engine was built from it';
  return withDecisions(
    `${what} agrees with the original on every output, ${onSamples(passed)}${more}.`,
    passed,
  );
}

const withDecisions = (sentence: string, { outputs }: VerifyResult): string =>
  [sentence, decisionsSentence(outputs)].filter((each) => each !== null).join(' ');

const stopOutcomes = {
  [ExitCode.pass]: 'error',
  [ExitCode.failed]: 'fail',
  [ExitCode.badInput]: 'error',
  [ExitCode.machineCannot]: 'inconclusive',
  [ExitCode.inconclusive]: 'inconclusive',
  [ExitCode.internal]: 'error',
} as const;

function stopped(error: NonNullable<ForgeResult['error']>): Judgement {
  return {
    verdict: {
      outcome: stopOutcomes[error.exitCode],
      headline: `The run stopped in its phase ${error.phase}.`,
      reasons: [error.message],
    },
    exitCode: error.exitCode,
  };
}

/** The repair as the configuration of the next run. */
const configText = ({ keepNodes }: NonNullable<VerifyResult['next']>): string =>
  keepNodes.length === 0 ? '' : ` Add to trtforge.config.yaml: keep-nodes: ${JSON.stringify(keepNodes)}.`;

/** A search that shows nothing yet; null where what was verified decides. */
function unhealed(heal: Heal, passes: boolean): Judgement | null {
  const { outcome, isSmallest, isUnseen, limitMs, headline, tried } = heal;
  const isPassing = outcome === 'found' && passes;
  const isLate = outcome === 'ended' || (isPassing && !isSmallest);
  const isSeen = isPassing && !isUnseen;
  if (!isLate && !isSeen) return null;
  const late = `The search ended after ${formatMs(limitMs)} and ${plural(tried, 'candidate')}; the same command goes on from there.`;
  const seen =
    'The samples that judge it are those of the search: pass at least four different ones to --inputs or --calibration, so that some can be held out.';
  const built = `${healedText(heal)} ${isLate ? 'Fewer may be enough.' : ''}`.trim();
  return {
    verdict: {
      outcome: 'inconclusive',
      headline: outcome === 'ended' ? `${heal.failed} ${headline}` : built,
      reasons: [...(isLate ? [late] : []), ...(isSeen ? [seen] : []), ...heal.reasons],
    },
    exitCode: ExitCode.inconclusive,
  };
}

/** `Healed: 3 of 40 nodes raised to FP32.` */
function healedText({ raised, tf32, prices }: Heal): string {
  const all = prices.find(({ what }) => what === 'healed')?.nodes?.all;
  const of = all === undefined ? '' : ` of ${all}`;
  const some = raised.filter(({ nodes }) => nodes.length > 0 || tf32);
  const nodes = some.map(({ nodes, to }) => `${nodes.length}${of} nodes raised to ${to.toUpperCase()}`);
  return `Healed: ${[...(tf32 ? [] : ['built without TF32']), ...nodes].join(', ')}.`;
}

function notPassed(result: VerifyResult, what: string, heal: ForgeResult['heal']): Judgement {
  const { outcome, outputs, verdicts, next } = result;
  const found = next === undefined ? [] : [`${next.message}${configText(next)}`];
  const searched =
    heal === null
      ? []
      : [
          heal.outcome === 'none'
            ? `Not healed: ${heal.headline}`
            : `What the search found passes on its samples and not on others: ${healedText(heal)}`,
          ...heal.reasons,
        ];
  const reasons = [...result.reasons, ...found, ...searched];
  const fail = outcome === 'fail';
  const failed = outputs.filter((output) => !output.pass).length;
  const headline = !fail
    ? `The comparison does not show whether the ${what} agrees with the original, ${onSamples(result)}.`
    : verdicts.contract === 'fail'
      ? `The ${what} does not have the outputs of the original.`
      : `${failed} of ${plural(outputs.length, 'output')} of the ${what} ${failed === 1 ? 'is' : 'are'} outside tolerance ${onSamples(result)}.`;
  return {
    verdict: { outcome, headline: withDecisions(headline, result), reasons },
    exitCode: fail ? ExitCode.failed : ExitCode.inconclusive,
  };
}

/** The parts that a pass does not cover: steps with the same reason together. */
function skippedReasons(phases: readonly ReportPhase[]): string[] {
  const byReason = new Map<string, string[]>();
  for (const { name, status, detail } of phases) {
    if (status === 'skipped') byReason.set(detail, [...(byReason.get(detail) ?? []), name]);
  }
  return [...byReason].map(([reason, names]) => `Skipped ${names.join(', ')}: ${reason}.`);
}
