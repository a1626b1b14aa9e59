import { TrtforgeError } from '../../../errors.js';
import { typeLabel } from '../../tensor/dtype.js';
import type { Flow } from '../flow.js';
import { floatFormats, quantizedFormats } from '../formats/index.js';
import type { ResolvedConversion } from '../options.js';
import { type Obstacles, type Placement, placeQuantizers } from './placement.js';
import { weighted } from './placement-rules.js';

/**
 * Throws TF_NOT_QUANTIZABLE for a placement without a pair, unless that is what the user named or allowed: with the rules that kept nodes out, and the
 * precisions that would quantize some; for a model in 16 bits with their type.
 */
export function assertQuantizable(
  { decisions }: Placement,
  path: string,
  flow: Flow,
  options: ResolvedConversion,
  obstacles?: Obstacles,
): void {
  const { quantization, allowUnconverted } = options;
  if (quantization === undefined || allowUnconverted || isAny(decisions)) return;
  const unnamed = { ...options, keepNodes: [], keepOps: new Set<string>(), unquantizedNodes: [] };
  if (isAny(placeQuantizers(flow, unnamed, obstacles).decisions)) return;
  const able = quantizedFormats.filter((format) => {
    const asked = { ...unnamed, quantization: { ...quantization, format } };
    return format !== quantization.format && isAny(placeQuantizers(flow, asked).decisions);
  });
  const dtype = typeInPlaceOfFp32(flow);
  if (dtype !== undefined && able.length === 0)
    throw new TrtforgeError(
      'TF_NOT_QUANTIZABLE',
      `The convolutions and matrix products of ${path} are ${typeLabel(dtype)} already, and only FP32 weights can be quantized.`,
      { remedy: 'Quantize the FP32 original.', details: { dtype } },
    );
  const { rules, reasons } = keptBy(decisions);
  const { label } = quantization.format;
  throw new TrtforgeError(
    'TF_NOT_QUANTIZABLE',
    decisions.length === 0
      ? `${path} has no convolution and no matrix product that could be ${label}.`
      : `No node of ${path} can be ${label}. What keeps them out: ${reasons.join('; ')}.`,
    {
      remedy: `Pass --precision ${[...able, ...floatFormats].map(({ id }) => id).join(' or ')}.`,
      details: { rules, precisions: able.map(({ id }) => id) },
    },
  );
}

/** So many reasons of one rule are in a message. */
const MOST_REASONS = 3;

/** How many nodes each rule kept out, and the same in words: of each rule its reasons, which name channels and sizes of single nodes, with the number of nodes that have each. */
export function keptBy(kept: readonly { readonly rule: string; readonly reason: string }[]): {
  readonly rules: Readonly<Record<string, number>>;
  readonly reasons: readonly string[];
} {
  const rules: Record<string, number> = {};
  const nodes = new Map<string, Map<string, number>>();
  for (const { rule, reason } of kept) {
    rules[rule] = (rules[rule] ?? 0) + 1;
    const own = nodes.get(rule) ?? new Map<string, number>();
    nodes.set(rule, own.set(reason, (own.get(reason) ?? 0) + 1));
  }
  const reasons = [...nodes].map(([rule, own]) => {
    const texts = [...own].slice(0, MOST_REASONS).map(([reason, count]) => `${count}: ${reason}`);
    const rest = own.size - texts.length;
    return `${rule} (${texts.join(', ')}${rest > 0 ? `, and ${rest} more` : ''})`;
  });
  return { rules, reasons };
}

/** The type of a model's convolutions and matrix products that were converted to 16 bits. */
const typeInPlaceOfFp32 = ({ operations }: Flow): string | undefined =>
  operations
    .filter(({ node }) => weighted.has(node.opType))
    .map(({ inputs }) => inputs[0]?.type)
    .find((type) => type === 'float16' || type === 'bfloat16');

const isAny = (decisions: Placement['decisions']): boolean => decisions.some(({ quantized }) => quantized);
