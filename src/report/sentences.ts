import { basename } from 'node:path';
import {
  formatBytes,
  formatCount,
  formatMs,
  formatShare,
  formatStatistic,
  plural,
} from '../base/text/quantity.js';
import type { ModelFacts } from '../formats/onnx/model-facts.js';
import { type ConversionResult, floatPrecision } from '../formats/precision/conversion.js';
import { formatNamed } from '../formats/precision/formats/index.js';
import type { BenchMode, BenchResult } from '../quality/bench/result.js';
import type { Measure, VerifiedOutput, VerifyResult } from '../quality/verify/result.js';
import type { ForgedEngine, ForgeResult, Outcome } from './result.js';

/** The sentences of a result; reports and terminal use the same. */

export const outcomeWord: Readonly<Record<Outcome, string>> = {
  pass: 'Pass',
  fail: 'Fail',
  inconclusive: 'Inconclusive',
  built: 'Built',
  error: 'Error',
};

/** The colour of a badge. */
export const outcomeTone = {
  pass: 'good',
  fail: 'bad',
  inconclusive: 'warn',
  built: 'accent',
  error: 'bad',
} as const;

export const precisionLabel = (precision: string): string =>
  formatNamed(precision)?.label ?? (precision === 'fp32' ? 'FP32' : precision);

export const formatMeasure = (measure: Measure): string => formatStatistic(Number(measure));

/** Statistics that fit a line; the page's table under "How it was measured" and the JSON have all. */
export const IN_SHORT: ReadonlySet<string> = new Set(['max', 'mean', 'p99', 'SNR in dB']);

/** The comparison that decides about a run: the first that did not pass, else that of the engine, where it was run. */
export const decidingVerification = ({
  verification,
  engineVerification,
}: Pick<ForgeResult, 'verification' | 'engineVerification'>): VerifyResult | null =>
  verification !== null && verification.outcome !== 'pass'
    ? verification
    : (engineVerification ?? verification);

/** `max 0.01, mean 0.002, p99 0.006, SNR in dB 60`. */
export const shortStatistics = ({ statistics }: VerifiedOutput): string =>
  statistics
    .flatMap(({ name, amount }) => (IN_SHORT.has(name) ? [`${name} ${formatMeasure(amount)}`] : []))
    .join(', ');

/** What floating-point nodes compute in, the lowest precision first. Q/DQ pairs are none of them, and what stands between pairs computes in codes. */
export function computedNodes(conversion: ConversionResult) {
  const { precision, quantization, convertedOps, nodes } = conversion;
  const rest = floatPrecision(conversion);
  const coded = new Set(quantization?.nodes.flatMap(({ node, quantized }) => (quantized ? [node] : [])));
  const withCodes = conversion.kept.filter(({ op }) => !isPair(op));
  const kept = withCodes.filter(({ node }) => !coded.has(node));
  // Around pairs in FP32 nothing is converted, and nodes are not counted by operator.
  const inRest =
    rest === 'fp32'
      ? nodes.untouched - 2 * quantization!.activations.length - quantization!.weights
      : Object.entries(convertedOps).reduce((sum, [op, count]) => sum + (isPair(op) ? 0 : count), 0);
  const floats = { label: precisionLabel(rest), nodes: inRest - coded.size + withCodes.length - kept.length };
  const label = `${precisionLabel(precision)}${quantization?.activations.length === 0 ? ' weights' : ''}`;
  const lowered = quantization === null ? [floats] : [{ label, nodes: coded.size }, floats];
  const all = lowered.reduce((sum, each) => sum + each.nodes, kept.length);
  return { all, lowest: lowered[0]!, share: all === 0 ? 0 : lowered[0]!.nodes / all, lowered, kept };
}

const isPair = (op: string): boolean => /quantize(linear)?$/i.test(op);

/** "12 of 26 floating-point nodes (46.2 %) compute in INT8 now, 14 in FP16; no rule held a node back." */
export function conversionSentence(conversion: ConversionResult): string {
  const { all, lowest, share, lowered, kept } = computedNodes(conversion);
  const reasons = new Set(kept.map(({ rule }) => rule)).size;
  const stay =
    kept.length === 0
      ? 'no rule held a node back'
      : `${plural(kept.length, 'node')} ${kept.length === 1 ? 'stays' : 'stay'} in FP32, for ${reasons === 1 ? 'one reason' : `${reasons} reasons`}`;
  const more = lowered.slice(1).map(({ label, nodes }) => `, ${formatCount(nodes)} in ${label}`);
  return `${formatCount(lowest.nodes)} of ${plural(all, 'floating-point node')} (${formatShare(share)}) compute in ${lowest.label} now${more.join('')}; ${stay}.`;
}

export function engineSentence({ source, passport }: ForgedEngine): string {
  const { built, plan } = passport;
  const took = `its build took ${formatMs(built.ms)}`;
  const how = {
    built: `Built now in ${formatMs(built.ms)}`,
    kept: `Was in the folder already (${took})`,
    local: `Found in the local store (${took})`,
    remote: `Fetched from the remote store (${took})`,
  }[source];
  return `${how}: ${formatBytes(plan.bytes)} for ${engineTarget(passport)}.`;
}

/** Fields listed of a miss; --json has them all. */
const LISTED = 6;

/** A miss as lines of text. */
export function missLines({
  from,
  reason,
  nearest,
  differences,
}: Omit<ForgedEngine['why'][number], 'code'>): readonly string[] {
  const lines = [`${from} store: miss (${reason})`];
  if (nearest === null) return lines;
  lines.push(`nearest there: ${nearest.name} (${nearest.identity.slice(0, 12)})`);
  for (const { field, wanted, stored } of differences.slice(0, LISTED)) {
    lines.push(`  ${field}: wanted ${valueText(wanted)}, stored ${valueText(stored)}`);
  }
  if (differences.length > LISTED) lines.push(`  and ${differences.length - LISTED} more fields`);
  return lines;
}

const valueText = (value: unknown): string => {
  if (value === undefined) return 'nothing';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^[0-9a-f]{64}$/.test(text) ? `${text.slice(0, 12)}…` : text;
};

/** `tensorrt-rtx 1.7.1.116`. */
export const libraryOf = ({ identity }: ForgedEngine['passport']): string =>
  `${identity.document.target.product} ${identity.document.target.version}`;

/** `sm_89, sm_120`; empty for an engine that is not for named GPUs. */
export const gpusOf = ({ identity }: ForgedEngine['passport']): string =>
  identity.document.target.computeCapabilities.map((capability) => `sm_${capability}`).join(', ');

const engineTarget = (passport: ForgedEngine['passport']): string =>
  [libraryOf(passport), gpusOf(passport)].filter((part) => part !== '').join(', ');

/** "0.524 ms on the GPU for batch 1 (median of 19,000), 1,908 items a second." */
export function speedSentence({ runs, gpu, backend }: BenchResult): string {
  const [first] = runs;
  if (first === undefined) return `Nothing was measured on ${backend}.`;
  const { gpuMs, endToEndMs, batch, itemsPerSecond, doubts } = first;
  const spread = gpuMs ?? endToEndMs;
  const time =
    spread === null
      ? 'No time is known'
      : `${formatMs(spread.median)} on ${gpu?.name ?? backend} for batch ${batch} (median of ${formatCount(spread.count)})`;
  const doubt = doubts.length === 0 ? '' : ' Unreliable: read the warnings.';
  return `${time}, ${formatCount(Math.round(itemsPerSecond))} items a second.${doubt}`;
}

/** `GPU only, CUDA graph, spin wait` */
export function modeText({ kind, graph, spinWait, streams, idleMs }: BenchMode): string {
  return [
    kind === 'end-to-end' ? 'end to end' : kind === 'gpu-only' ? 'GPU only' : 'with transfers',
    ...(graph === null ? [] : [graph ? 'CUDA graph' : 'no CUDA graph']),
    ...(spinWait === null ? [] : [spinWait ? 'spin wait' : 'no spin wait']),
    ...(streams > 1 ? [plural(streams, 'stream')] : []),
    ...(idleMs > 0 ? [`${idleMs} ms idle`] : []),
  ].join(', ');
}

/** Where the whole run stands, for titles: "resnet50, FP16, tensorrt-rtx 1.7.1.116, sm_89". */
export function runTitle(result: ForgeResult): string {
  const precision = result.conversion?.precision ?? result.request.precision;
  const target = result.build ? engineTarget(result.build.passport) : result.request.target;
  return [precisionLabel(precision), target].filter((part) => part !== null).join(' · ');
}

/** `models/resnet50.onnx` is the model `resnet50`. */
export const nameOfFile = (path: string): string => basename(path).replace(/\.onnx$/i, '') || 'model';

/** Of the ONNX file and its external data. */
export const modelBytes = ({ fileBytes, externalFiles }: ModelFacts): number =>
  externalFiles.reduce((sum, { bytes }) => sum + (bytes ?? 0), fileBytes);
