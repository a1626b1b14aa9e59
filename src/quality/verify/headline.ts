import { dirname } from 'node:path';
import { plural } from '../../base/text/quantity.js';
import { checkText, isOfDecisions, severityOf, shortNumber, worstFirst } from './checks.js';
import { type Decisions, decisionText } from './decisions.js';
import { BLOWN_UP } from './judged.js';
import type { VerifiedOutput, VerifyResult } from './result.js';

/** The subject of a verdict, and what decided: the same words in every text, page and gate. */

type Judged = Pick<VerifyResult, 'outputs' | 'samples' | 'samplesFrom' | 'unreached'>;

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
  const left = (samplesFrom.available ?? count) - count;
  const rest = left > 0 ? ` (${left} left out)` : '';
  return `on ${plural(count, noun)} of ${sources.slice(0, NAMED).join(', ')}${more}${rest}`;
}

/** Decisions with what is neither kept nor lost: `43 of 44 decisions (above 0.5) kept, 2 new, 3 near ties`. */
const decisionsText = (decisions: Decisions): string =>
  [
    decisionText(decisions),
    ...(decisions.ties > 0 ? [plural(decisions.ties, 'near tie')] : []),
    ...(decisions.pass === null ? ['too few to decide'] : []),
  ].join(', ');

/** The checks of an output, line by line, then what the samples show nothing about. */
export const checkedLines = ({
  checks,
  decisions = [],
  classes,
  unstable = [],
  blownUp,
  nonFinite,
}: VerifiedOutput): readonly string[] => [
  ...checks.filter(({ statistic }) => !isOfDecisions(statistic)).map(checkText),
  ...decisions.map(decisionsText),
  ...(classes !== undefined && classes.unpredicted > 0
    ? [
        `${classes.unpredicted} of ${classes.of} classes (axis ${classes.axis}) never predicted: no sample has one above 0.1`,
      ]
    : []),
  ...(nonFinite !== undefined && nonFinite.mismatching > (nonFinite.onlyInCandidate ?? 0)
    ? [
        `the original has ${nonFinite.nanInReference} NaN and ${nonFinite.infiniteInReference} infinite elements: the verdict is not about those`,
      ]
    : []),
  ...unstable.map(
    ({ sample, moved }) =>
      `sample ${sample} does not decide: rounding its inputs alone ${moved === 'NaN' ? 'makes NaN or infinity of the original' : `moves the original by ${shortNumber(Number(moved))}`}`,
  ),
  ...(blownUp === undefined
    ? []
    : [
        `drawn samples make it reach ${shortNumber(blownUp.peak)}, ${BLOWN_UP} times the weights behind it and more, and its limits follow from that. Pass real samples: --inputs`,
      ]),
];

/** Of each output that decides the rule of which most turned, the worst outputs first; null without a decision. What failed is the first reason of its output. */
export function decisionsSentence(outputs: readonly VerifiedOutput[]): string | null {
  const turned = ({ lost, new: added, reference, pass }: Decisions) =>
    pass === null ? -1 : (lost + added) / Math.max(1, reference);
  const found = worstFirst(outputs).flatMap(({ name, decisions = [] }) => {
    const [worst] = decisions.toSorted((a, b) => turned(b) - turned(a));
    if (worst === undefined || worst.pass === false) return [];
    return `${outputs.length === 1 ? '' : `${name}: `}${decisionsText(worst)}`;
  });
  const more = found.length > NAMED ? `; and ${plural(found.length - NAMED, 'more output')}` : '';
  return found.length === 0 ? null : `${found.slice(0, NAMED).join('; ')}${more}.`;
}

/** The deciding check: of the output that decided, the one that went furthest. `isLimit`: its limit did, not a doubt. Null if nothing was checked. */
export function decidedBy({ outputs }: Pick<VerifyResult, 'outputs'>) {
  const output = worstFirst(outputs).find(({ checks }) => checks.length > 0);
  const [check] = output?.checks.toSorted((a, b) => severityOf(b) - severityOf(a)) ?? [];
  if (output === undefined || check === undefined) return null;
  const decisions = output.decisions?.find(({ rule }) => check.statistic.endsWith(`(${rule})`));
  return {
    ...{ output, check, severity: severityOf(check), isLimit: output.outcome !== 'inconclusive' },
    text: decisions === undefined ? checkText(check) : decisionsText(decisions),
  };
}

/** The parts that the verdict does not cover; of samples that do not run for one reason the first. */
export function blindSpots({ leftOut = [], unreached, headRoom }: VerifyResult): readonly string[] {
  const lines = [...new Set(leftOut.map(({ reason }) => reason))].map((reason) => {
    const [first, ...more] = leftOut.filter((each) => each.reason === reason);
    return `${first!.message}${more.length === 0 ? '' : ` ${more.length} more do not run either.`}`;
  });
  const others = [
    ...(unreached?.branches ?? []),
    ...(unreached?.tables ?? []),
    ...(headRoom ? [headRoom] : []),
  ];
  return [...lines, ...others.map(({ message }) => message)];
}

/** `2 of 3 outputs stay within tolerance on drawn samples; scores comes closest to its limit: …`, then the decisions and the branches that no sample took. */
export function verifyHeadline(result: Judged): string {
  const branches = result.unreached?.branches.slice(0, NAMED).map(({ message }) => message) ?? [];
  const sentences = [accuracySentence(result), decisionsSentence(result.outputs), ...branches];
  return sentences.filter((sentence) => sentence !== null).join(' ');
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
