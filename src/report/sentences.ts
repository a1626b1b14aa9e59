import { basename } from 'node:path';
import {
  formatBytes,
  formatCount,
  formatMs,
  formatShare,
  formatStatistic,
  plural,
} from '../base/text/quantity.js';
import type { LayerPrecisions, PlanContents } from '../engines/identity/passport.js';
import type { ModelFacts } from '../formats/onnx/model-facts.js';
import { formatNamed } from '../formats/precision/formats/index.js';
import { type ConversionResult, floatPrecision } from '../formats/precision/result.js';
import { typeLabel } from '../formats/tensor/dtype.js';
import type { BenchMode, BenchResult } from '../quality/bench/result.js';
import type { Measure, VerifiedOutput, VerifyResult } from '../quality/verify/result.js';
import type { ForgedEngine, ForgeResult, Heal, Outcome } from './forge-result.js';

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
export const IN_SHORT: ReadonlySet<string> = new Set(['max', 'mean', 'SNR in dB']);

/** The comparison that decides about a run: the first that did not pass, else that of the engine, where it was run. */
export const decidingVerification = ({
  verification = null,
  engineVerification = null,
}: Partial<Pick<ForgeResult, 'verification' | 'engineVerification'>>): VerifyResult | null =>
  verification !== null && verification.outcome !== 'pass'
    ? verification
    : (engineVerification ?? verification);

/** The command lines that go on from what a run found. */
export const nextOf = (
  result: Parameters<typeof decidingVerification>[0] & Pick<ForgeResult, 'repeat' | 'heal'>,
): readonly string[] => {
  const { repeat, heal } = result;
  const deciding = decidingVerification(result);
  const isOpen = heal !== null && heal.outcome !== 'none' && !heal.isSmallest;
  const canHeal = heal === null && deciding?.verdicts.numeric === 'fail' && repeat !== null;
  const line = isOpen ? repeat : canHeal ? `${repeat} --heal` : (deciding?.next?.bisect ?? null);
  return line === null ? [] : [line];
};

const priceNames = { failed: 'failed', healed: 'healed', fp32: 'FP32' } as const;

/** What the engines of a search take, side by side; columns that no row has are left out. */
export function priceTable({ prices }: Pick<Heal, 'prices'>) {
  const text = <T>(value: T | null, format: (value: T) => string) => (value === null ? '–' : format(value));
  const columns: readonly (readonly [string, (price: Heal['prices'][number]) => string])[] = [
    ['nodes raised', ({ nodes }) => text(nodes, ({ higher, all }) => `${higher} of ${all}`)],
    ['their FLOPs', ({ flops }) => text(flops, formatShare)],
    ['model', ({ modelBytes }) => text(modelBytes, formatBytes)],
    ['engine', ({ engineBytes }) => text(engineBytes, formatBytes)],
    ['on the GPU', ({ gpuMs }) => text(gpuMs, formatMs)],
  ];
  const shown = columns.filter(([, cell]) => prices.some((price) => cell(price) !== '–'));
  return {
    columns: ['', ...shown.map(([title]) => title)],
    rows: prices.map((price) => [priceNames[price.what], ...shown.map(([, cell]) => cell(price))]),
  };
}

/** `max 0.01, mean 0.002, SNR in dB 60`. */
export const shortStatistics = ({ statistics }: VerifiedOutput): string =>
  statistics
    .flatMap(({ name, amount }) => (IN_SHORT.has(name) ? [`${name} ${formatMeasure(amount)}`] : []))
    .join(', ');

/** "26 of 33 convolutions in INT8, 7 in FP16: few channels (7)." */
export function conversionSentence(conversion: ConversionResult): string {
  const { label, kinds, others } = computedNodes(conversion);
  const counts = kinds.map(({ kind, all, lowest }) => `${formatCount(lowest)} of ${plural(all, kind)}`);
  const types = [...new Set(others.map(({ type }) => type))].map((type) => {
    const ofType = others.filter((group) => group.type === type);
    const reasons = ofType.map(
      ({ title, nodes }) =>
        `${title.replace(/^[A-Z][a-z]* /, (word) => word.toLowerCase())} (${nodes.length})`,
    );
    return `${formatCount(ofType.reduce((sum, { nodes }) => sum + nodes.length, 0))} in ${type}: ${reasons.join(', ')}`;
  });
  return `${[`${counts.join(' and ')} in ${label}`, types.join('; ')].filter((each) => each !== '').join(', ')}.`;
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

/** What a plan's bytes are, or that it is not known: plans of TensorRT do not state it, and passports of versions before. */
export function contentsSentence(contents: PlanContents | null | undefined): string {
  if (contents == null) return 'What of the plan are weights and what kernels is not known.';
  const { weightsBytes, kernelsBytes, programBytes } = contents;
  return `The plan holds ${formatBytes(weightsBytes)} of weights, ${formatBytes(kernelsBytes)} of kernels and ${formatBytes(programBytes)} of program.`;
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

/** Nodes that compute in floating point for the same reason. */
interface FloatingNodes {
  readonly nodes: readonly string[];
  readonly computes: string;
  readonly reason: string;
  /** Whether the model quantizes them, in vain. */
  readonly isProblem: boolean;
}

/** The types that the layers of a quantized model compute in: a sentence for each operator, for attentions and for kernels that only convert. */
export function layerSentences({ operators, attentions, conversions }: LayerPrecisions): string[] {
  const { quantize, dequantize, move } = conversions;
  return [
    ...operators.map(({ op, nodes, types }) => {
      const [[first = '', count = 0] = [], ...rest] = Object.entries(types);
      const others = rest.map(([type, some]) => `, ${formatCount(some)} in ${typeLabel(type)}`).join('');
      return `${formatCount(count)} of ${formatCount(nodes)} ${op} in ${typeLabel(first)}${others}`;
    }),
    ...(attentions.quantized === 0
      ? []
      : [`${attentions.fused} of ${plural(attentions.quantized, 'quantized attention')} fused`]),
    ...(quantize + dequantize + move === 0
      ? []
      : [`kernels that only quantize: ${quantize}, dequantize: ${dequantize}, move: ${move}`]),
  ];
}

/** The nodes that a quantized model leaves in floating point, those that it quantizes in vain first. */
export function floatingNodes({ floating }: LayerPrecisions): readonly FloatingNodes[] {
  const groups = new Map<string, FloatingNodes & { nodes: string[] }>();
  for (const { node, computes, reason, finding, requested } of floating) {
    const key = `${computes} ${reason}`;
    const group = groups.get(key);
    if (group !== undefined) group.nodes.push(node);
    else
      groups.set(key, { nodes: [node], computes, reason, isProblem: finding !== null || requested !== null });
  }
  return [...groups.values()];
}

/** `conv1 runs in FP16: …`, with the first nodes of more. */
export function floatingSentence({ nodes, computes, reason }: FloatingNodes): string {
  const named = nodes.slice(0, 3).join(', ');
  const rest = nodes.length > 3 ? ` and ${nodes.length - 3} more` : '';
  return `${named}${rest} ${nodes.length === 1 ? 'runs' : 'run'} in ${typeLabel(computes)}: ${reason}`;
}

/** The operators that quantization is about: the rest of a network takes little of its time. */
const products: Readonly<Record<string, string>> = {
  Conv: 'convolution',
  ConvTranspose: 'convolution',
  Gemm: 'matrix product',
  MatMul: 'matrix product',
};

/**
 * The nodes that compute in the lowest precision: of convolutions and matrix products where pairs were inserted, else of all floating-point nodes.
 * `others` are the rest of these, `stay` nodes of other kinds in FP32, each by the rule that decided it.
 */
export function computedNodes(conversion: ConversionResult) {
  const { precision, quantization, kept } = conversion;
  const rest = precisionLabel(floatPrecision(conversion));
  const considered = quantization?.nodes.filter(({ op }) => op in products) ?? [];
  const isQuantized = considered.length > 0;
  const isFp32 = new Set(kept.map(({ node }) => node));
  const isConsidered = new Set(considered.map(({ node }) => node));
  const left = groupsOf(
    considered.filter(({ quantized }) => !quantized),
    quantization?.rules,
    ({ node }) => (isFp32.has(node) ? 'FP32' : rest),
  );
  const stay = groupsOf(
    kept.filter(({ node, op }) => !isConsidered.has(node) && !/quantize(linear)?$/i.test(op)),
    conversion.rules,
    () => 'FP32',
  );
  const converted = Object.values(conversion.convertedOps).reduce((sum, count) => sum + count, 0);
  const kinds = isQuantized
    ? [...new Set(considered.map(({ op }) => products[op]!))].map((kind) => {
        const ofKind = considered.filter(({ op }) => products[op] === kind);
        return { kind, all: ofKind.length, lowest: ofKind.filter(({ quantized }) => quantized).length };
      })
    : [{ kind: 'floating-point node', all: converted + kept.length, lowest: converted }];
  const total = (of: 'all' | 'lowest') => kinds.reduce((sum, each) => sum + each[of], 0);
  const coded = `${precisionLabel(precision)}${quantization?.activations.length === 0 ? ' weights' : ''}`;
  return {
    ...{
      kinds,
      all: total('all'),
      lowest: total('lowest'),
      share: total('lowest') / Math.max(1, total('all')),
    },
    ...(isQuantized ? { label: coded, others: left, stay } : { label: rest, others: stay, stay: [] }),
  };
}

/** Nodes by what they compute in, and by the rule that decided it. */
function groupsOf(
  nodes: ConversionResult['kept'],
  rules: readonly { readonly id: string; readonly title: string }[] = [],
  typeOf: (node: ConversionResult['kept'][number]) => string,
) {
  const types = [...new Set(nodes.map(typeOf))];
  const groups = types.flatMap((type) => rules.map((rule) => ({ ...rule, type })));
  return groups
    .map((group) => ({
      ...group,
      nodes: nodes.filter((node) => node.rule === group.id && typeOf(node) === group.type),
    }))
    .filter((group) => group.nodes.length > 0);
}
