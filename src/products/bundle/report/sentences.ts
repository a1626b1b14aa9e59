import { formatMs, formatStatistic, plural } from '../../../base/text/quantity.js';
import { ExitCode } from '../../../errors.js';
import type { PageVerdict } from '../../../report/blocks.js';
import type { TimedPhases } from '../../../report/pages/section/run.js';
import { outcomeWord, precisionLabel } from '../../../report/sentences.js';
import type { ChainCheck } from '../chain-schema.js';
import type { BundleReport, ComponentReport } from '../result.js';

/** The sentences of a bundle's report; page and terminal use the same. */

/** A run that stopped has a word of its own: a bundle that was not built is neither good nor bad. */
type BundleVerdict = Pick<PageVerdict, 'outcome' | 'word' | 'headline' | 'reasons'>;

export function bundleVerdict(report: BundleReport): BundleVerdict {
  const { outcome, checks, not_checked } = report;
  const headline = bundleHeadline(report);
  if (outcome === 'error')
    return {
      outcome: report.exitCode === ExitCode.inconclusive ? 'inconclusive' : 'fail',
      word: 'Stopped',
      headline,
      reasons: stopReasons(report),
    };
  if (outcome === 'fail' || outcome === 'inconclusive')
    return {
      outcome,
      word: outcomeWord[outcome],
      headline,
      reasons: checks.flatMap(({ reasons }) => reasons),
    };
  return {
    outcome,
    word: outcomeWord[outcome],
    headline,
    reasons: [...checks.map(checkSentence), ...not_checked],
  };
}

/** `3 engines in 12.4 s; the bundle decodes as its models do.` A check that passes differs at most where two decisions were almost equal. */
export function bundleHeadline(report: BundleReport): string {
  const { outcome, components, checks, failure, outdir, total_sec } = report;
  const time = formatMs(total_sec * 1000);
  const stopped = failure?.code === 'TF_CANCELLED' ? 'was cancelled' : 'failed';
  const of = failure?.component ? ` of ${failure.component}` : '';
  if (outcome === 'error' && (failure?.step === 'smoke run' || failure?.step === 'chained check'))
    return `${plural(components.length, 'engine')} in ${outdir}, not checked: the ${failure.step}${of} ${stopped} (${time}).`;
  if (outcome === 'error')
    return `The bundle was not built${failure?.component ? `: ${failure.component} ${stopped}` : ''} (${time}).`;
  const engines = `${plural(components.length, 'engine')} in ${time}`;
  if (outcome === 'fail') return `${engines}, but the bundle decodes otherwise than its models.`;
  if (outcome === 'inconclusive')
    return `${engines}; too few decisions agree to tell whether the bundle decodes as its models do.`;
  if (checks.length === 0) return `${engines}, not verified: nothing was compared with the models.`;
  const isClose = checks.some(({ differences }) => differences.length > 0);
  return `${engines}; the bundle decodes as its models do${isClose ? ', except for low-margin decisions' : ''}.`;
}

/** Where it stopped, why, and what there is all the same. Mismatches have a list of their own. */
function stopReasons(report: BundleReport): readonly string[] {
  const { failure, mismatches, components } = report;
  const where = [failure?.step, failure?.component].filter(Boolean).join(' ');
  const done = components.filter(({ engine_bytes }) => engine_bytes !== null);
  const message = failure?.message ?? '';
  return [
    ...(where === '' ? [] : [`It stopped in its step "${where}".`]),
    mismatches.length === 0 ? message : (message.split('\n')[0] ?? ''),
    ...(done.length === 0
      ? []
      : [
          `${done.map(({ component }) => component).join(' and ')} ${done.length === 1 ? 'has its engine and is' : 'have their engines and are'} not built again when the same command is repeated${report.repeat?.includes(' --force-rebuild') ? ' without --force-rebuild' : ''}.`,
        ]),
  ];
}

export const statusTexts: Readonly<Record<ComponentReport['status'], string>> = {
  built: 'built',
  kept: 'was there already',
  local: 'found in the local store',
  remote: 'found in the remote store',
  earlier: 'left as it was',
  failed: 'failed',
  'not-reached': 'not reached',
};

/** `20260101_120000`, as the report has it, in ISO 8601. */
export const isoTime = (stamp: string): string =>
  stamp.replace(/^(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)$/, '$1-$2-$3T$4:$5:$6Z');

/** `FP16 · tensorrt-rtx 1.7.1.116 · sm_89`. */
export function bundleTitle({ precision, target, env }: BundleReport): string {
  const made = env.product === null ? 'no toolchain' : `${env.product} ${env.tensorrt_version ?? ''}`.trim();
  // A target is PRODUCT or PRODUCT:GPUS.
  const gpus = target?.includes(':') ? target.slice(target.indexOf(':') + 1) : null;
  return [precisionLabel(precision), made, gpus].filter((part) => part !== null).join(' · ');
}

export function componentsSentence({ components, builder, env }: BundleReport): string {
  if (components.length === 0) return 'The run stopped before it knew the components.';
  const count = (...statuses: readonly ComponentReport['status'][]) =>
    components.filter(({ status }) => statuses.includes(status)).length;
  const parts: readonly (readonly [number, string])[] = [
    [count('built'), 'built now'],
    [count('kept', 'earlier'), 'there already'],
    [count('local', 'remote'), 'found in a store'],
    [count('failed'), 'failed'],
    [count('not-reached'), 'not reached'],
  ];
  const counts = parts.flatMap(([many, words]) => (many === 0 ? [] : [`${many} ${words}`])).join(', ');
  const by = builder === 'trtexec' ? 'trtexec' : "the library's builder";
  const how = env.product === null ? '' : ` By ${by}, on ${env.gpu ?? 'a machine without a GPU'}.`;
  return `${plural(components.length, 'component')}: ${counts}.${how}`;
}

/** `The typed models decide as the models do: of 64 decisions 64 tokens and 64 durations agree; …` */
export function checkSentence(check: ChainCheck): string {
  const { decisions, token_agreement, duration_agreement, equal_sequences, samples, drifts } = check;
  const blanks =
    check.emitted_tokens === 0 && decisions > 0
      ? ' Every decision is a blank, so the predictor was run in its first state only.'
      : '';
  return `Of ${plural(decisions, 'decision')} of the ${check.candidate}, ${token_agreement} tokens and ${duration_agreement} durations agree with the models in FP32; ${equal_sequences} of ${plural(samples, 'sequence')} ${equal_sequences === 1 ? 'is' : 'are'} equal${drifts === null ? '' : `; most drift comes from the ${drifts}`}.${blanks}`;
}

export const agreementShare = (agreeing: number, { decisions }: ChainCheck): number =>
  decisions === 0 ? 0 : agreeing / decisions;

export const driftText = (relative: number | null): string =>
  relative === null ? 'not finite' : formatStatistic(relative);

export function smokeSentence({ components, not_checked }: BundleReport): string {
  const ran = components.flatMap(({ smoke }) => smoke ?? []);
  const engines = ran.filter((smoke) => smoke.ran === 'engine').length;
  const rest =
    not_checked.length === 0
      ? ''
      : ` ${plural(not_checked.length, 'thing')} ${not_checked.length === 1 ? 'was' : 'were'} not done, with the reason below.`;
  if (ran.length === 0) return `No component was run.${rest}`;
  const which =
    engines === ran.length
      ? `as ${plural(engines, 'engine')}`
      : engines === 0
        ? 'as the model that the engine was built from'
        : `${plural(engines, 'engine')} and ${plural(ran.length - engines, 'model')}`;
  return `${ran.length} of ${plural(components.length, 'component')} ran once at the opt shapes of the profile, ${which}.${rest}`;
}

/** Every phase of the run, those of components by their names, on one clock; one that did not run stands where it would have. */
export function timedPhases({ phases, components, total_sec }: BundleReport): TimedPhases {
  const totalMs = total_sec * 1000;
  const lists = components.flatMap(({ component, status, forge }) =>
    status === 'earlier' || forge === null
      ? []
      : [forge.phases.map((phase) => ({ ...phase, name: `${component}: ${phase.name}` }))],
  );
  const placed = [phases, ...lists].flatMap((list) => {
    let at = 0;
    return list.map((phase) => {
      at = phase.startMs ?? (phase.status === 'not-reached' ? totalMs : at);
      return { phase, at };
    });
  });
  return { phases: placed.sort((a, b) => a.at - b.at).map(({ phase }) => phase), totalMs };
}
