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
import { type CheckResult, checkText, severityOf, worstFirst } from '../quality/verify/checks.js';
import type { Measure, VerifiedOutput, VerifyResult } from '../quality/verify/result.js';
import type { ForgedEngine, ForgeResult, Outcome } from './result.js';

/** The sentences of a result; reports and terminal use the same. */

export const outcomeWord: Readonly<Record<Outcome, string>> = {
  pass: 'Pass',
  fail: 'Fail',
  inconclusive: 'Inconclusive',
  error: 'Error',
};

/** The colour of a badge. */
export const outcomeTone = { pass: 'good', fail: 'bad', inconclusive: 'warn' } as const;

export const precisionLabel = (precision: string): string =>
  formatNamed(precision)?.label ?? (precision === 'fp32' ? 'FP32' : precision);

export const formatMeasure = (measure: Measure): string => formatStatistic(Number(measure));

/** Statistics that fit a line; the page's table under "How it was measured" and the JSON have all. */
export const IN_SHORT: ReadonlySet<string> = new Set(['max', 'mean', 'p99', 'SNR in dB']);

/** `max 0.01, mean 0.002, p99 0.006, SNR in dB 60`. */
export const shortStatistics = ({ statistics }: VerifiedOutput): string =>
  statistics
    .flatMap(({ name, amount }) => (IN_SHORT.has(name) ? [`${name} ${formatMeasure(amount)}`] : []))
    .join(', ');

interface Decision {
  readonly output: VerifiedOutput;
  readonly check: CheckResult;
  /** 1 at the limit; infinite for anything over a limit of 0. */
  readonly severity: number;
}

/** The check that decided: of the output that decided the one that went furthest. Null when nothing was checked. */
export function decisionOf({ outputs }: Pick<VerifyResult, 'outputs'>): Decision | null {
  const output = worstFirst(outputs).find(({ checks }) => checks.length > 0);
  const [check] = output?.checks.toSorted((a, b) => severityOf(b) - severityOf(a)) ?? [];
  return output === undefined || check === undefined ? null : { output, check, severity: severityOf(check) };
}

/** Outputs named in a sentence; the table lists all. */
const OUTPUTS_NAMED = 3;

export function accuracySentence({ outputs, samples }: Pick<VerifyResult, 'outputs' | 'samples'>): string {
  const all = outputs.length;
  const on = `on ${plural(samples, 'sample')}`;
  const of = (outcome: VerifiedOutput['outcome']) => outputs.filter((output) => output.outcome === outcome);
  const share = (some: number) =>
    some === all && all === 1 ? 'The only output' : `${some} of ${plural(all, 'output')}`;
  const [failed, open] = [of('fail'), of('inconclusive')];
  const decision = decisionOf({ outputs });
  if (decision === null) return `${all === 0 ? 'No output' : 'Nothing'} was compared ${on}.`;
  const { output, check } = decision;
  if (failed.length > 0)
    return `${share(failed.length)} ${failed.length === 1 ? 'is' : 'are'} outside tolerance ${on}; ${output.name} is furthest out: ${checkText(check)}.`;
  if (open.length > 0) {
    const named = open.slice(0, OUTPUTS_NAMED).map(({ name }) => name);
    const more = open.length - named.length;
    return `${share(open.length)} cannot be decided ${on}: ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}.`;
  }
  const stay = all === 1 ? 'The only output stays' : `${all === 2 ? 'Both' : `All ${all}`} outputs stay`;
  return `${stay} within tolerance ${on}; ${output.name} comes closest to its limit: ${checkText(check)}.`;
}

interface ComputedNodes {
  readonly all: number;
  /** The lowest precision first, and the nodes that compute in it. */
  readonly lowered: readonly { readonly label: string; readonly nodes: number }[];
  readonly kept: ConversionResult['kept'];
}

/** What floating-point nodes compute in. Q/DQ pairs are none of them, and what stands between pairs computes in codes. */
export function computedNodes(conversion: ConversionResult): ComputedNodes {
  const { precision, quantization, convertedOps, nodes } = conversion;
  const coded = new Set(quantization?.nodes.flatMap(({ node, quantized }) => (quantized ? [node] : [])));
  const kept = conversion.kept.filter(({ node, op }) => !isPair(op) && !coded.has(node));
  const keptCodes = conversion.kept.filter(({ node, op }) => !isPair(op) && coded.has(node)).length;
  const pairs = Object.entries(convertedOps).reduce((sum, [op, count]) => sum + (isPair(op) ? count : 0), 0);
  const floats = Math.max(0, nodes.converted - pairs - (coded.size - keptCodes));
  const label = `${precisionLabel(precision)}${quantization?.activations.length === 0 ? ' weights' : ''}`;
  const rest = floatPrecision(conversion);
  const lowered = [
    ...(quantization === null ? [] : [{ label, nodes: coded.size }]),
    ...(rest === 'fp32' ? [] : [{ label: precisionLabel(rest), nodes: floats }]),
  ];
  return { all: coded.size + floats + kept.length, lowered, kept };
}

const isPair = (op: string): boolean => /quantize(linear)?$/i.test(op);

/** "12 of 26 floating-point nodes (46.2 %) compute in INT8 now, 14 in FP16; no rule kept a node in FP32." */
export function conversionSentence(conversion: ConversionResult): string {
  const { all, lowered, kept } = computedNodes(conversion);
  const reasons = new Set(kept.map(({ rule }) => rule)).size;
  const stay =
    kept.length === 0
      ? 'no rule kept a node in FP32'
      : `${plural(kept.length, 'node')} ${kept.length === 1 ? 'stays' : 'stay'} in FP32, for ${reasons === 1 ? 'one reason' : `${reasons} reasons`}`;
  const [first, ...others] = lowered;
  const share = first === undefined || all === 0 ? 0 : first.nodes / all;
  const more = others.map(({ label, nodes }) => `, ${formatCount(nodes)} in ${label}`).join('');
  return `${formatCount(first?.nodes ?? 0)} of ${plural(all, 'floating-point node')} (${formatShare(share)}) compute in ${first?.label} now${more}; ${stay}.`;
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

/** Fields named in a sentence; the `build` of the result lists all. */
const FIELDS_NAMED = 3;

/** What a store lacked, and the nearest that it has. */
export function missSentence({ from, reason, nearest, differences }: ForgedEngine['why'][number]): string {
  const place = `${from[0]?.toUpperCase()}${from.slice(1)} store: ${reason}`;
  if (nearest === null) return `${place}.`;
  const fields = differences.map(({ field }) => field);
  const more = fields.length - FIELDS_NAMED;
  const named = `${fields.slice(0, FIELDS_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return `${place}; the nearest there, ${nearest.name}, differs in ${named}.`;
}

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
