import { TrtforgeError } from '../../../errors.js';
import { assertFloat } from '../../../formats/onnx/quantized-operations.js';
import { inferShapes } from '../../../formats/onnx/shapes/infer.js';
import { isNumber } from '../../../formats/onnx/shapes/size.js';
import { type Operation, operatorName, readFlow } from '../../../formats/precision/flow.js';
import type { FormatId } from '../../../formats/precision/formats/index.js';
import { type ConversionOptions, resolveConversion } from '../../../formats/precision/options.js';
import { placeQuantizers } from '../../../formats/precision/quantize/placement.js';
import { weightOperand } from '../../../formats/precision/quantize/weight-operand.js';
import { asConverted } from '../model-nodes.js';

/** A node, or a repeated block of a large model, that is quantized or left as one. */
export interface Unit {
  /** Of its node, or of its first and last. */
  readonly name: string;
  readonly nodes: readonly string[];
  readonly op: string;
  /** Elements of its weights. */
  readonly weights: number;
  /** Multiply-adds of one sample; 0 where shapes are not known. */
  readonly macs: number;
  /** Activations that get a pair for it. */
  readonly tensors: readonly string[];
}

/** Parts of a model that can be quantized, and those that cannot. */
export interface Units {
  readonly units: readonly Unit[];
  /** Weighted nodes that the placement rules keep out. */
  readonly ruledOut: readonly {
    readonly node: string;
    readonly op: string;
    readonly rule: string;
    readonly reason: string;
  }[];
  /** Of all weighted nodes, those included that are kept out. */
  readonly weights: number;
  readonly macs: number;
}

/** A model with more nodes to quantize is divided by its repeated blocks. */
const MOST_UNITS = 64;

/**
 * The nodes of a model that a format may quantize, in graph order, with what each would save for inputs of these shapes. The nodes have names of their own.
 * Throws TF_NOT_QUANTIZABLE for a model that is quantized already and for one without such a node, and what opening a model throws.
 */
export const unitsOf = (
  path: string,
  precision: FormatId,
  options: ConversionOptions,
  inputs: ReadonlyMap<string, readonly number[]>,
): Promise<Units> =>
  asConverted(path, options, (model) => {
    assertFloat(model.proto, path);
    const flow = readFlow(model.proto);
    const resolved = resolveConversion(precision, options);
    const { format } = resolved.quantization ?? {};
    if (format === undefined) throw new TrtforgeError('TF_INTERNAL', `${precision} has no codes.`);
    const shapes = inferShapes(model, inputs);
    const { decisions } = placeQuantizers(flow, resolved);
    const considered = decisions.filter(({ operation, rule }) => isProduct(operation) && rule !== 'residual');
    const macsOf = ({ node }: Operation): number => {
      const flops = shapes.nodes.get(node)?.flops;
      return isNumber(flops) ? flops / 2 : 0;
    };
    const units = considered.flatMap(({ operation, quantized, weight, activations }) =>
      quantized
        ? [
            {
              name: operation.node.name,
              nodes: [operation.node.name],
              op: operatorName(operation),
              weights: elementsOf(weight?.dims),
              macs: macsOf(operation),
              tensors: activations.map(({ value }) => value.name),
            },
          ]
        : [],
    );
    const ruledOut = considered
      .filter(({ quantized }) => !quantized)
      .map(({ operation, rule, reason }) => ({
        node: operation.node.name,
        op: operatorName(operation),
        rule,
        reason,
      }));
    if (units.length === 0)
      throw new TrtforgeError(
        'TF_NOT_QUANTIZABLE',
        `No node of ${path} can be quantized to ${format.label}${ruledOut[0] === undefined ? '' : `: of "${ruledOut[0].node}", for one, ${ruledOut[0].reason}`}.`,
        { remedy: `\`trtforge convert --precision ${precision} --json\` lists the reason of every node.` },
      );
    const sum = (amount: (operation: Operation) => number) =>
      considered.reduce((total, { operation }) => total + amount(operation), 0);
    return {
      units: inBlocks(units, MOST_UNITS),
      ruledOut,
      weights: sum((operation) => elementsOf(weightOperand(operation)?.dims)),
      macs: sum(macsOf),
    };
  });

const products: ReadonlySet<string> = new Set(['Conv', 'ConvTranspose', 'Gemm', 'MatMul']);
const isProduct = ({ node }: Operation): boolean => products.has(node.opType);

const elementsOf = (dims: readonly number[] | undefined): number =>
  dims === undefined ? 0 : dims.reduce((product, dim) => product * dim, 1);

function joined(parts: readonly Unit[]): Unit {
  const [first] = parts;
  const last = parts.at(-1);
  if (first === undefined || last === undefined)
    throw new TrtforgeError('TF_INTERNAL', 'A unit has no node.');
  const ops = [...new Set(parts.map(({ op }) => op))];
  const total = (amount: (part: Unit) => number) => parts.reduce((sum, part) => sum + amount(part), 0);
  return {
    name: parts.length === 1 ? first.name : `${first.name} … ${last.nodes.at(-1)}`,
    nodes: parts.flatMap(({ nodes }) => nodes),
    op: ops.join(', '),
    weights: total(({ weights }) => weights),
    macs: total(({ macs }) => macs),
    tensors: [...new Set(parts.flatMap(({ tensors }) => tensors))],
  };
}

/** Where units repeat in the same order (layers of an encoder, blocks of a stage), each turn is one unit. Fewer than `most` stay as they are. */
export function inBlocks(units: readonly Unit[], most: number): readonly Unit[] {
  if (units.length <= most) return units;
  const kinds = units.map(({ op, weights, nodes }) => `${op} ${weights} ${nodes.length}`);
  const repeats = (at: number, period: number): boolean =>
    at + period <= kinds.length &&
    kinds.slice(at, at + period).every((kind, place) => kind === kinds[at - period + place]);
  const blocks: Unit[] = [];
  let period = 1;
  for (let at = 0; at < units.length; at += period) {
    // Another turn of the block before.
    if (!(period > 1 && repeats(at, period)))
      period = bestPeriod(kinds.length - at, (next) => {
        let turns = 1;
        while (repeats(at + next * turns, next)) turns++;
        return turns;
      });
    blocks.push(joined(units.slice(at, at + period)));
  }
  return blocks;
}

/** The length of block whose turns cover the most; 1 where nothing of more than one repeats. */
function bestPeriod(left: number, turnsOf: (period: number) => number): number {
  let [best, covered] = [1, 1];
  for (let period = 2; 2 * period <= left; period++) {
    const turns = turnsOf(period);
    if (turns > 1 && turns * period > covered) [best, covered] = [period, turns * period];
  }
  return best;
}
