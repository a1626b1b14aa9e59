import { plainDomain } from '../onnx/operators.js';
import { type Flow, isFloat32, isStored, type Operation, type Value } from './flow.js';

/** Inputs that determine how large something is, where it starts, or how often it repeats. */
const sizeInputs: ReadonlyMap<string, readonly number[]> = new Map(
  Object.entries({
    Reshape: [1],
    Expand: [1],
    Slice: [1, 2, 3, 4],
    Tile: [1],
    ConstantOfShape: [0],
    Resize: [1, 2, 3],
    Upsample: [1],
    Pad: [1, 3],
    Range: [0, 1, 2],
    TopK: [1],
    OneHot: [1],
    Squeeze: [1],
    Unsqueeze: [1],
    Split: [1],
    CenterCropPad: [1],
    Trilu: [1],
    Loop: [0],
    AffineGrid: [1],
    DFT: [1, 2],
    STFT: [1, 3],
    MaxUnpool: [2],
    Col2Im: [1, 2],
  }),
);

/** Steps that sizes are computed with, by exporters that do it in floats. Heavier operators end the search: they are the network itself. */
const arithmetic: ReadonlySet<string> = new Set(
  `Add Sub Mul Div Floor Ceil Round Pow Sqrt Min Max Mod Neg Abs Cast Identity Reciprocal Sign Clip Log Exp
  ReduceProd ReduceMax ReduceMin ReduceSum Range`.split(/\s+/),
);
/** Steps that only hand sizes on; what they hand on is their first input (all inputs of Concat). */
const handing: ReadonlySet<string> = new Set(
  'Slice Gather Squeeze Unsqueeze Reshape Flatten Transpose Concat'.split(' '),
);
/** Only looked through on the way back from a size, since data passes them too. */
const backwardOnly: ReadonlySet<string> = new Set('Where Equal Greater Less And Or Not Expand'.split(' '));

/**
 * Operations that compute sizes in floats: those whose result reaches a size input, and those computed from sizes and constants alone.
 * TensorRT takes FP32 for shape tensors but not 16 bits, and 65504 (or BF16's 8 bits) is soon too little for a size.
 */
export function shapeArithmetic(flow: Flow): ReadonlySet<Operation> {
  const marked = new Set<Operation>();
  markTowardsSizes(flow, marked);
  markFromSizes(flow, marked);
  return marked;
}

function markTowardsSizes(flow: Flow, marked: Set<Operation>): void {
  const seen = new Set<Operation>();
  const visit = (value: Value | undefined) => {
    const queue = [value];
    while (queue.length > 0) {
      const producer = queue.pop()?.producer;
      if (producer === undefined || seen.has(producer) || plainDomain(producer.node.domain) !== '') continue;
      const type = producer.node.opType;
      if (!arithmetic.has(type) && !handing.has(type) && !backwardOnly.has(type)) continue;
      seen.add(producer);
      if (computesFloats(producer)) marked.add(producer);
      queue.push(...producer.inputs);
    }
  };
  for (const operation of flow.operations) {
    if (plainDomain(operation.node.domain) !== '') continue;
    for (const index of sizeInputs.get(operation.node.opType) ?? []) visit(operation.inputs[index]);
  }
}

function markFromSizes(flow: Flow, marked: Set<Operation>): void {
  const sizes = new Set<Value>();
  for (const operation of flow.operations) {
    if (plainDomain(operation.node.domain) !== '') continue;
    if (!isSize(operation, sizes)) continue;
    for (const output of operation.outputs) if (output !== undefined) sizes.add(output);
    if (computesFloats(operation)) marked.add(operation);
  }
}

function isSize(operation: Operation, sizes: ReadonlySet<Value>): boolean {
  const type = operation.node.opType;
  if (type === 'Shape' || type === 'Size') return true;
  const inputs = operation.inputs.filter((value) => value !== undefined);
  const known = (value: Value) => sizes.has(value) || isStored(value);
  if (arithmetic.has(type) || type === 'Concat')
    return inputs.every(known) && inputs.some((value) => sizes.has(value));
  return handing.has(type) && inputs[0] !== undefined && sizes.has(inputs[0]);
}

const computesFloats = (operation: Operation): boolean =>
  operation.inputs.some(isFloat32) || operation.outputs.some(isFloat32);
