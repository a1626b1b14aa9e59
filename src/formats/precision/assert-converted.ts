import { TrtforgeError } from '../../errors.js';
import { isStored, operatorName } from './flow.js';
import { type FloatFormatId, floatFormats } from './formats/index.js';
import type { ResolvedConversion } from './options.js';
import type { Plan } from './plan.js';
import { keptBy } from './quantize/assert-quantizable.js';
import type { Quantization } from './quantize/quantize.js';
import { requestedRules } from './rules.js';

/** The decisions of a conversion about a file. */
interface Decided {
  readonly path: string;
  readonly plan: Plan;
  readonly quantized: Quantization | undefined;
  /** Whether the model as it was would have nodes of another type. */
  readonly wouldConvert: (precision: FloatFormatId) => Promise<boolean>;
}

interface Reason {
  readonly rule: string;
  readonly reason: string;
}

/**
 * Throws TF_NOT_CONVERTIBLE, and TF_NOT_QUANTIZABLE for a quantized precision, where no node has got the precision, or had it, unless that is allowed: an
 * engine is named by it.
 */
export async function assertConverted(decided: Decided, options: ResolvedConversion): Promise<void> {
  const { path, plan, quantized, wouldConvert } = decided;
  if (options.allowUnconverted || has(decided, options)) return;
  const { format, quantization } = options;
  const { label } = quantization?.format ?? format;
  const kept = quantized?.placement.decisions ?? keptNodes(plan);
  const { rules, reasons } = keptBy(kept);
  const able: FloatFormatId[] = [];
  for (const { id } of floatFormats)
    if ((quantization !== undefined || id !== format.id) && (await wouldConvert(id))) able.push(id);
  const obstacle = plan.opsetObstacle === undefined ? '' : ` ${plan.opsetObstacle}`;
  const isNamed = kept.length > 0 && kept.every(({ rule }) => named.has(rule));
  throw new TrtforgeError(
    quantization === undefined ? 'TF_NOT_CONVERTIBLE' : 'TF_NOT_QUANTIZABLE',
    kept.length === 0
      ? `${path} has no FP32 node that could be ${label}.`
      : `No node of ${path} can be ${label}. What keeps them out: ${reasons.join('; ')}.${obstacle}`,
    {
      remedy: remedyOf(decided, able, isNamed),
      details: { rules, precisions: able },
    },
  );
}

const named: ReadonlySet<string> = new Set([...requestedRules.map(({ id }) => id), 'high-precision-node']);

function remedyOf({ path, plan }: Decided, able: readonly FloatFormatId[], isNamed: boolean): string {
  if (isNamed) return 'Remove the options that name these nodes or their operators.';
  const other = able.map((id) => `--precision ${id}`).join(' or ');
  if (plan.opsetObstacle !== undefined)
    return `Export the model with that opset${other === '' ? '' : `, or pass ${other}`}.`;
  return other === ''
    ? `Build the model as it is: trtforge build ${path} --precision as-is`
    : `Pass ${other}.`;
}

function has({ plan, quantized }: Decided, { format, quantization }: ResolvedConversion): boolean {
  if (quantization !== undefined) return quantized?.placement.decisions.some((one) => one.quantized) === true;
  return plan.flow.operations.some(
    (operation) =>
      plan.decisions.of(operation).kind === 'convert' ||
      (operatorName(operation) !== 'Cast' &&
        operation.outputs.some((value) => value?.type === format.dtype && !isStored(value))),
  );
}

function keptNodes({ flow, decisions }: Plan): readonly Reason[] {
  return flow.operations.flatMap((operation) => {
    const decision = decisions.of(operation);
    return decision.kind === 'keep' ? [decision] : [];
  });
}
