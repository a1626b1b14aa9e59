import { createHash } from 'node:crypto';
import { openOrtSession } from '../../../engines/runtime/onnxruntime/ort-session.js';
import { type ObservedFile, observeRanges } from '../../../formats/precision/calibrate/observed-model.js';
import type { ValueRange } from '../../../formats/precision/calibrate/ranges.js';
import { isFloat32, isStored, type Operation, operatorName } from '../../../formats/precision/flow.js';
import { type FormatId, floatFormatNamed } from '../../../formats/precision/formats/index.js';
import { movers, sources } from '../../../formats/precision/operator-traits.js';
import { type ConversionOptions, resolveConversion } from '../../../formats/precision/options.js';
import { planConversion } from '../../../formats/precision/plan.js';
import { changedOptions } from '../conversion.js';
import { asConverted } from '../model-nodes.js';
import type { Judge } from './judge.js';
import type { BisectContext, BisectRequest } from './options.js';

/** A node that may stay FP32: the conversion computes it in 16 bits. */
export interface Suspect {
  readonly name: string;
  readonly op: string;
  /** Nodes that do the same in repeated blocks have the same role. */
  readonly role: string;
  /** The largest magnitude among what it reads and makes, where that was observed. */
  readonly peak: number | null;
  /** Whether that is beyond what the format holds. */
  readonly overflows: boolean;
}

/** Steps around a node that decide its role: enough to distinguish a block's nodes, too few to distinguish one block from the next. */
const ROLE_RADIUS = 3;

/** Suspected first: what divides, normalises or averages. Last, what 16 bits are for. All others lie between. */
const FIRST =
  `ReduceSum ReduceMean Div Sqrt Reciprocal Log Softmax LogSoftmax LayerNormalization RMSNormalization InstanceNormalization
  GroupNormalization BatchNormalization GlobalAveragePool AveragePool Sub Mul Add`.split(/\s+/);
const LAST = 'Attention LSTM GRU RNN Einsum Gemm MatMul ConvTranspose Conv'.split(' ');

/** An operator's rank among the suspects of a failure in 16 bits: the least suspected has the highest. */
function innocence(op: string): number {
  const first = FIRST.indexOf(op);
  return first >= 0 ? first : FIRST.length + 1 + LAST.indexOf(op);
}

/**
 * The nodes of a model that a conversion computes in 16 bits, likeliest culprits first: those at a value beyond the format's range, then by what their
 * operator does, then in the order of the graph, bodies included. Operators that only move values stay FP32 with their neighbours; those that do not come last.
 * The reference shows the values, where it has run.
 * Throws what opening, planning a conversion and running throw.
 */
export async function suspectsOf(
  model: string,
  precision: FormatId,
  options: ConversionOptions,
  { reference, samples }: Pick<Judge, 'reference' | 'samples'>,
  { threads }: Pick<BisectRequest, 'threads'>,
  context: BisectContext,
): Promise<readonly Suspect[]> {
  const { signal } = context;
  const open = ({ path, weightsFolder }: ObservedFile) =>
    openOrtSession(path, { threads, weightsFolder, givenModel: model, ...context });
  const inputs =
    reference === null ? [] : Array.from({ length: samples }, (_, sample) => reference.plan.tensors(sample));
  const ranges: ReadonlyMap<string, ValueRange> =
    inputs.length === 0
      ? new Map()
      : await observeRanges(model, () => inputs, open, { signal, pluginTypes: options.pluginTypes });
  const limit = floatFormatNamed(precision)?.maxFinite ?? Number.POSITIVE_INFINITY;
  const convertedWith = (keep: readonly string[]) =>
    asConverted(model, options, async (opened) => {
      const kept = changedOptions(options, { keep });
      const { flow, decisions } = await planConversion(opened, resolveConversion(precision, kept), {
        signal,
      });
      return flow.operations.filter((operation) => decisions.of(operation).kind === 'convert');
    });
  const all = await convertedWith([]);
  const roles = rolesOf(all);
  const names = new Set(all.filter((each) => !isMover(each)).map(({ node }) => node.name));
  // A node that moves weights rounds them for all readers.
  for (let before = -1; names.size > before; ) {
    before = names.size;
    for (const { node } of await convertedWith([...names])) names.add(node.name);
  }
  const suspects = all.flatMap((operation) => {
    const op = operatorName(operation);
    if (!names.has(operation.node.name)) return [];
    const peak = peakAt(operation, ranges);
    // NaN is beyond every range.
    const overflows = peak !== null && !(peak <= limit);
    return [{ name: operation.node.name, op, role: roles.get(operation) ?? op, peak, overflows }];
  });
  return suspects.sort(
    (a, b) =>
      Number(b.overflows) - Number(a.overflows) ||
      Number(movers.has(a.op)) - Number(movers.has(b.op)) ||
      innocence(a.op) - innocence(b.op),
  );
}

const isMover = (operation: Operation): boolean =>
  movers.has(operatorName(operation)) || sources.has(operatorName(operation));

function peakAt({ inputs, outputs }: Operation, ranges: ReadonlyMap<string, ValueRange>): number | null {
  const peaks = [...inputs, ...outputs].flatMap((value) => {
    const range = value === undefined ? undefined : ranges.get(value.name);
    return range === undefined ? [] : [Math.max(-range.min, range.max)];
  });
  return peaks.length === 0 ? null : Math.max(...peaks);
}

/** Digests of what an operation is and of what stands around it, refined step by step as in the Weisfeiler-Lehman test of isomorphism. */
function rolesOf(operations: readonly Operation[]): ReadonlyMap<Operation, string> {
  let roles = new Map(operations.map((operation) => [operation, digest(nature(operation))]));
  for (let step = 0; step < ROLE_RADIUS; step++) {
    const before = roles;
    const roleOf = (operation: Operation | undefined) =>
      operation === undefined ? '' : (before.get(operation) ?? '');
    roles = new Map(
      operations.map((operation) => {
        const makers = operation.inputs.map((value) => roleOf(value?.producer));
        const readers = operation.outputs.map((value) =>
          (value?.uses ?? [])
            .map((use) => (use.kind === 'input' ? `${roleOf(use.operation)}${use.index}` : 'output'))
            .sort(),
        );
        return [operation, digest([roleOf(operation), makers, readers])];
      }),
    );
  }
  return roles;
}

/** The operator and the shapes of its weights. */
const nature = (operation: Operation): unknown => [
  operatorName(operation),
  operation.inputs.map((value) =>
    value !== undefined && isStored(value) && isFloat32(value) ? value.tensor?.dims.map(Number) : null,
  ),
];

const digest = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 12);
