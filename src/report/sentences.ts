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
  error: 'Error',
};

/** The colour of a badge. */
export const outcomeTone = { pass: 'good', fail: 'bad', inconclusive: 'warn' } as const;

export const precisionLabel = (precision: string): string =>
  formatNamed(precision)?.label ?? (precision === 'fp32' ? 'FP32' : precision);

export const formatMeasure = (measure: Measure): string => formatStatistic(Number(measure));

interface ToleranceUse {
  readonly output: VerifiedOutput;
  readonly statistic: string;
  readonly measured: Measure;
  readonly limit: number;
  /** Measured over limit; infinite for NaN and for anything over a limit of 0. */
  readonly share: number;
}

/** The check that came closest to its limit, or went furthest beyond it. Null when nothing was checked. */
export function tightestCheck(verification: VerifyResult): ToleranceUse | null {
  let tightest: ToleranceUse | null = null;
  for (const output of verification.outputs) {
    for (const { statistic, measured, limit } of output.checks) {
      const share = toleranceShare(Number(measured), limit);
      if (tightest === null || share > tightest.share)
        tightest = { output, statistic, measured, limit, share };
    }
  }
  return tightest;
}

function toleranceShare(measured: number, limit: number): number {
  if (measured === 0) return 0;
  const share = measured / limit;
  return Number.isNaN(share) ? Number.POSITIVE_INFINITY : share;
}

export function accuracySentence(verification: VerifyResult): string {
  const passed = verification.outputs.filter((output) => output.pass).length;
  const all = verification.outputs.length;
  const where = `${passed === all ? (all === 1 ? 'The only output stays' : `${all === 2 ? 'Both' : `All ${all}`} outputs stay`) : `${passed} of ${plural(all, 'output')} ${passed === 1 ? 'stays' : 'stay'}`} within tolerance on ${plural(verification.samples, 'seeded sample')}`;
  const tightest = tightestCheck(verification);
  if (tightest === null) return `${where}.`;
  const { output, statistic, measured, limit, share } = tightest;
  const how = share > 1 ? 'is furthest out' : 'comes closest to its limit';
  return `${where}; ${output.name} ${how}: ${statistic} ${formatMeasure(measured)}, allowed ${formatStatistic(limit)}.`;
}

export const convertedShare = (conversion: ConversionResult): number => {
  const all = conversion.nodes.converted + conversion.nodes.kept;
  return all === 0 ? 0 : conversion.nodes.converted / all;
};

export function conversionSentence(conversion: ConversionResult): string {
  const { converted: convertedNodes, kept: keptNodes } = conversion.nodes;
  const all = convertedNodes + keptNodes;
  const word = precisionLabel(floatPrecision(conversion));
  const reasons = conversion.rules.filter(({ nodes }) => nodes > 0).length;
  const kept =
    keptNodes === 0
      ? 'no rule kept a node in FP32'
      : `${plural(keptNodes, 'node')} ${keptNodes === 1 ? 'stays' : 'stay'} in FP32, for ${reasons === 1 ? 'one reason' : `${reasons} reasons`}`;
  return `${formatCount(convertedNodes)} of ${plural(all, 'floating-point node')} (${formatShare(convertedShare(conversion))}) compute in ${word} now; ${kept}.${quantizedSentence(conversion)}`;
}

function quantizedSentence({ precision, quantization }: ConversionResult): string {
  if (quantization === null) return '';
  const quantized = quantization.nodes.filter((node) => node.quantized).length;
  return ` ${formatCount(quantized)} of ${plural(quantization.nodes.length, 'node')} considered are quantized to ${precisionLabel(precision)}.`;
}

export function engineSentence({ source, passport, why }: ForgedEngine): string {
  const { built, plan } = passport;
  const took = `its build took ${formatMs(built.ms)}`;
  const how = {
    built: `Built now in ${formatMs(built.ms)}`,
    kept: `Was in the folder already (${took})`,
    local: `Found in the local store (${took})`,
    remote: `Fetched from the remote store (${took})`,
  }[source];
  const misses = source === 'built' ? why.map((miss) => ` ${missSentence(miss)}`).join('') : '';
  return `${how}: ${formatBytes(plan.bytes)} for ${engineTarget(passport)}.${misses}`;
}

/** Fields named in a sentence; the `build` of the result lists all. */
const FIELDS_NAMED = 3;

function missSentence({ from, reason, nearest, differences }: ForgedEngine['why'][number]): string {
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
