import { formatBytes, formatMs, formatShare } from '../../base/text/quantity.js';
import type { ChartText, Tone } from '../chart/frame.js';
import { type Content, type Markup, markup } from '../markup.js';
import type { ForgeResult, Outcome } from '../result.js';
import {
  convertedShare,
  modelName,
  outcomeWord,
  precisionLabel,
  runTitle,
  tightestCheck,
} from '../sentences.js';

/** The head of the page: what was forged, whether it is good, and the few figures that people ask for first. */
export function verdictHeader(result: ForgeResult): Markup {
  return markup`<header><p class="kicker">trtforge ${result.version} · <time datetime="${result.startedAt}">${readableTime(result.startedAt)}</time></p><h1>${modelName(result)}</h1><p class="subtitle">${runTitle(result)}</p>${verdictBanner(result.verdict, failure(result))}${dials(result)}</header>`;
}

const icons: Readonly<Record<Outcome, Markup>> = {
  pass: markup`<path d="M13 25.5 21 33 36 16"/>`,
  fail: markup`<path d="M16 16 32 32M32 16 16 32"/>`,
  error: markup`<path d="M24 13v14M24 34v.5"/>`,
  inconclusive: markup`<path d="M17.5 19c0-8 13-8 13 0 0 5-6.5 5-6.5 10M24 34.5v.5"/>`,
};

interface BannerFacts {
  readonly outcome: Outcome;
  /** Where the outcome's own word would not say it. */
  readonly word?: string;
  readonly headline: string;
  readonly reasons: readonly string[];
}

/** The verdict with its reasons; `more` follows them. */
export function verdictBanner(
  { outcome, word = outcomeWord[outcome], headline, reasons }: BannerFacts,
  more: Content = null,
): Markup {
  return markup`<div class="verdict ${outcome}" role="status"><svg class="verdict-icon" viewBox="0 0 48 48" width="48" height="48" aria-hidden="true"><circle cx="24" cy="24" r="22"/>${icons[outcome]}</svg><div><p class="verdict-word">${word}</p><p class="verdict-headline">${headline}</p>${reasons.length > 0 && markup`<ul>${reasons.map((reason) => markup`<li>${reason}</li>`)}</ul>`}${more}</div></div>`;
}

function failure(result: ForgeResult): Content {
  const stopped = result.error;
  if (stopped === null) return knownIssues(result.issues ?? []);
  return markup`<p class="remedy"><strong>What to do:</strong> ${stopped.remedy} <code>${stopped.code}</code>, exit ${stopped.exitCode}</p>${knownIssues(stopped.issues ?? [])}`;
}

/** Notes are harmless and stay in the JSON. */
export function knownIssues(issues: NonNullable<ForgeResult['issues']>): Content {
  const telling = issues.filter(({ severity }) => severity !== 'note');
  return telling.map(
    ({ id, cause, remedy }) => markup`<p class="remedy"><code>${id}</code> ${cause} ${remedy}</p>`,
  );
}

function dials(result: ForgeResult): Content {
  const items = [accuracyDial(result), precisionDial(result), sizeDial(result)].filter(
    (item) => item !== null,
  );
  const figures: readonly (readonly [string, string])[] = [
    ...(result.build ? [['engine', formatBytes(result.build.passport.plan.bytes)] as const] : []),
    ...(result.bench?.gpuMs ? [['on the GPU', formatMs(result.bench.gpuMs.median)] as const] : []),
    ['whole run', formatMs(result.totalMs)],
  ];
  return dialList(items, figures);
}

export interface DialItem {
  readonly text: ChartText;
  readonly share: number;
  readonly figure: string;
  readonly tone: Exclude<Tone, 'quiet'>;
  readonly caption: string;
}

/** Rings for shares of a whole, then tiles for plain figures: a name and the figure. */
export function dialList(rings: readonly DialItem[], tiles: readonly (readonly [string, string])[]): Markup {
  return markup`<ul class="dials">${rings.map(({ text, share, figure, tone, caption }) => markup`<li>${dial(text, share, figure, tone)}<p>${caption}</p></li>`)}${tiles.map(([name, figure]) => markup`<li class="tile"><p class="tile-figure">${figure}</p><p>${name}</p></li>`)}</ul>`;
}

/** The engine itself counts where it was run. */
function accuracyDial({ verification, engineVerification }: ForgeResult): DialItem | null {
  const judged = engineVerification ?? verification;
  const tightest = judged && tightestCheck(judged);
  if (!tightest) return null;
  const tone = tightest.share > 1 ? 'bad' : tightest.share > 0.8 ? 'warn' : 'good';
  const figure =
    tightest.share < 9.995
      ? `${Math.ceil(tightest.share * 100)}%`
      : Number.isFinite(tightest.share)
        ? '>10×'
        : '∞';
  return {
    text: {
      id: 'dial-accuracy',
      title: 'Tolerance used',
      description: `${tightest.output.name}: ${tightest.statistic} uses ${figure} of its limit.`,
    },
    share: tightest.share,
    figure,
    tone,
    caption: 'of the tolerance used',
  };
}

function precisionDial({ conversion }: ForgeResult): DialItem | null {
  if (conversion === null) return null;
  const share = convertedShare(conversion);
  const word = precisionLabel(conversion.precision);
  return {
    text: {
      id: 'dial-precision',
      title: `Nodes in ${word}`,
      description: `${formatShare(share)} of the floating-point nodes compute in ${word}.`,
    },
    share,
    figure: `${Math.floor(share * 100)}%`,
    tone: 'accent',
    caption: `of float nodes in ${word}`,
  };
}

function sizeDial({ conversion }: ForgeResult): DialItem | null {
  if (conversion === null || conversion.bytes.before === 0) return null;
  const share = conversion.bytes.after / conversion.bytes.before;
  return {
    text: {
      id: 'dial-size',
      title: 'Size after conversion',
      description: `The converted model is ${formatShare(share)} of the size of the original.`,
    },
    share,
    figure: `${Math.round(share * 100)}%`,
    tone: 'accent',
    caption: 'of the ONNX size left',
  };
}

/** `2026-11-21T01:46:01.000Z` as `2026-11-21 01:46 UTC`: the same for every reader. */
export const readableTime = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;

const RADIUS = 42;
const AROUND = 2 * Math.PI * RADIUS;

/** A ring filled to `share` (0 to 1) with the figure in the middle. */
export function dial(text: ChartText, share: number, figure: string, tone: Tone): Markup {
  const filled = AROUND * Math.min(1, Math.max(0, share));
  return markup`<svg class="dial" role="img" aria-labelledby="${text.id}-title ${text.id}-text" viewBox="0 0 100 100" width="104" height="104" xmlns="http://www.w3.org/2000/svg"><title id="${text.id}-title">${text.title}</title><desc id="${text.id}-text">${text.description}</desc><circle class="dial-track" cx="50" cy="50" r="${RADIUS}"/><circle class="dial-fill ${tone}" cx="50" cy="50" r="${RADIUS}" stroke-dasharray="${filled.toFixed(2)} ${AROUND.toFixed(2)}" transform="rotate(-90 50 50)"/><text class="dial-figure" x="50" y="51" text-anchor="middle" dominant-baseline="middle">${figure}</text></svg>`;
}
