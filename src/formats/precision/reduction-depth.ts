import { attributeOf } from '../onnx/node-types.js';
import { smallIntegers } from '../onnx/small-integers.js';
import type { Operation } from './flow.js';
import type { ShapeOf } from './value-shapes.js';

/**
 * How many terms are added up for one output element of a product, convolution or reduction, as far as shapes are known;
 * undefined for other operators and unknown shapes.
 */
export function reductionDepth(operation: Operation, shapeOf: ShapeOf): number | undefined {
  const { node, inputs } = operation;
  const shape = (index: number) => shapeOf(inputs[index]);
  switch (node.opType) {
    case 'MatMul':
      return shape(1)?.at(-2) ?? shape(1)?.at(-1) ?? shape(0)?.at(-1);
    case 'Gemm': {
      const transposed = (name: string) => Number(attributeOf(node, name)?.i ?? 0) !== 0;
      return shape(1)?.[transposed('transB') ? 1 : 0] ?? shape(0)?.[transposed('transA') ? 0 : 1];
    }
    case 'Conv':
      return product(shape(1)?.slice(1));
    case 'ConvTranspose': {
      const weight = shape(1);
      const channels = weight?.[0];
      if (weight === undefined || channels === undefined) return undefined;
      return product([channels / Number(attributeOf(node, 'group')?.i ?? 1), ...weight.slice(2)]);
    }
    case 'GlobalAveragePool':
      return product(shape(0)?.slice(2));
    case 'AveragePool':
      return product((attributeOf(node, 'kernel_shape')?.ints ?? []).map(Number));
    case 'CumSum':
      return undefined;
    default:
      return node.opType.startsWith('Reduce') ? reduced(operation, shapeOf) : undefined;
  }
}

function reduced({ node, inputs }: Operation, shapeOf: ShapeOf): number | undefined {
  if (node.opType === 'ReduceMax' || node.opType === 'ReduceMin') return undefined;
  const shape = shapeOf(inputs[0]);
  if (shape === undefined) return undefined;
  const axes = attributeOf(node, 'axes')?.ints.map(Number) ?? smallIntegers(inputs[1]?.tensor);
  if (axes === undefined && inputs[1] !== undefined) return undefined;
  return product(axes === undefined || axes.length === 0 ? shape : axes.map((axis) => shape.at(axis)));
}

function product(dims: readonly (number | undefined)[] | undefined): number | undefined {
  if (dims === undefined || dims.some((dim) => dim === undefined)) return undefined;
  return dims.reduce<number>((result, dim) => result * (dim ?? 1), 1);
}
