import { dirname } from 'node:path';
import { formatShare, plural } from '../../base/text/quantity.js';
import { checkText, severityOf, worstFirst } from './checks.js';
import type { VerifiedOutput, VerifyResult } from './result.js';

/** What a verdict is about, and what decided: the same words in every text, page and gate. */

type Judged = Pick<VerifyResult, 'outputs' | 'samples' | 'samplesFrom'>;

const PICTURE = /\.(?:jpe?g|png|webp)$/i;
const RECORDING = /\.wav$/i;
/** Folders or files that are named. */
const NAMED = 2;

/** `on drawn samples`, `on 10 pictures of DIR`, `on 26 samples of FILE`. */
export function onSamples({ samples, samplesFrom }: Omit<Judged, 'outputs'>): string {
  if (samplesFrom === undefined) return `on ${plural(samples, 'sample')}`;
  const data = samplesFrom.samples.filter(({ kind }) => kind === 'data');
  if (data.length === 0) return 'on drawn samples';
  // Samples are used again where other inputs are drawn beside them.
  const items = new Map(data.map(({ origin, items }) => [origin, items]));
  const first = [...items].map(([origin, batch]) =>
    (batch === undefined ? origin : origin.split(' to ')[0]!).replace(/^(?:sample|chunk) \d+ of /, ''),
  );
  const are = (what: RegExp) => first.every((origin) => what.test(origin));
  const noun = are(PICTURE) ? 'picture' : are(RECORDING) ? 'recording' : 'sample';
  const count = [...items.values()].reduce<number>((sum, each = 1) => sum + each, 0);
  const sources = [...new Set(noun === 'sample' || count === 1 ? first : first.map((path) => dirname(path)))];
  const more = sources.length > NAMED ? ` and ${sources.length - NAMED} more` : '';
  return `on ${plural(count, noun)} of ${sources.slice(0, NAMED).join(', ')}${more}`;
}

type Decisions = NonNullable<VerifiedOutput['decisions']>[number];

/** `43 of 44 above 0.5 kept, 2 new`. */
export function decisionsText({ rule, reference, kept, new: added, ties, limit, pass }: Decisions): string {
  return [
    `${kept} of ${reference} ${rule} kept`,
    ...(rule.startsWith('above') ? [`${added} new`] : []),
    ...(ties > 0 ? [plural(ties, 'near tie')] : []),
    ...(pass === false ? [`more than ${formatShare(limit)} lost or new`] : []),
    ...(pass === null ? ['too few to decide'] : []),
  ].join(', ');
}

/** The share of the reference's decisions by a rule that is lost or new. */
export function lostShare(output: VerifiedOutput | undefined, rule: Decisions['rule']): number | undefined {
  const found = output?.decisions?.find((each) => each.rule === rule);
  return found && (found.lost + found.new) / Math.max(1, found.reference);
}

/** Of each output that decides the rule that lost or gained most, the worst outputs first; null without a decision. */
export function decisionsSentence(outputs: readonly VerifiedOutput[]): string | null {
  const found = worstFirst(outputs).flatMap((output) => {
    const { name, decisions = [] } = output;
    const share = ({ rule, pass }: Decisions) => (pass === null ? -1 : lostShare(output, rule)!);
    const [worst] = decisions
      .filter(({ reference, new: added }) => reference + added > 0)
      .toSorted((a, b) => share(b) - share(a));
    // What failed is the first reason of its output.
    if (worst === undefined || worst.pass === false) return [];
    return `${outputs.length === 1 ? '' : `${name}: `}${decisionsText(worst)}`;
  });
  const more = found.length > NAMED ? `; and ${plural(found.length - NAMED, 'more output')}` : '';
  return found.length === 0 ? null : `Decisions: ${found.slice(0, NAMED).join('; ')}${more}.`;
}

/**
 * What decided: of the output that decided the check that went furthest, or the decisions it lost. `isLimit`: a limit did, not a doubt or decisions.
 * Null when nothing was checked.
 */
export function decidedBy({ outputs }: Pick<VerifyResult, 'outputs'>) {
  const output = worstFirst(outputs).find(({ checks }) => checks.length > 0);
  const [check] = output?.checks.toSorted((a, b) => severityOf(b) - severityOf(a)) ?? [];
  if (output === undefined || check === undefined) return null;
  const lost = output.decisions?.find(({ pass }) => pass === false);
  const isLimit = output.outcome === 'pass' || (output.outcome === 'fail' && !check.pass);
  const text = lost !== undefined && check.pass ? decisionsText(lost) : checkText(check);
  return { output, check, severity: severityOf(check), isLimit, text };
}

/** `2 of 3 outputs stay within tolerance on drawn samples; scores comes closest to its limit: …`, then the decisions. */
export function verifyHeadline(result: Judged): string {
  const decisions = decisionsSentence(result.outputs);
  return `${accuracySentence(result)}${decisions === null ? '' : ` ${decisions}`}`;
}

function accuracySentence({ outputs, ...judged }: Judged): string {
  const all = outputs.length;
  const on = onSamples(judged);
  const decided = decidedBy({ outputs });
  if (decided === null) return `${all === 0 ? 'No output' : 'Nothing'} was compared ${on}.`;
  const { output, text } = decided;
  const same = outputs.filter(({ outcome }) => outcome === output.outcome).length;
  const share = all === 1 ? 'The only output' : `${same} of ${plural(all, 'output')}`;
  switch (output.outcome) {
    case 'fail':
      return `${share} ${same === 1 ? 'is' : 'are'} outside tolerance ${on}; ${output.name} is furthest out: ${text}.`;
    case 'inconclusive':
      return `${share} cannot be decided ${on}, ${output.name} first.`;
    case 'pass':
      return `${share} ${same === 1 ? 'stays' : 'stay'} within tolerance ${on}; ${output.name} comes closest to its limit: ${text}.`;
  }
}
