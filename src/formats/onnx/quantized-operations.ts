import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes } from '../tensor/dtype.js';
import { attributeOf, textAttribute } from './attributes.js';
import type { GraphTypes } from './dtype-inference.js';
import { GraphUses, type GraphView, isMain, isOnnxDomain, rearrangers } from './graph.js';
import type { GraphProto, ModelProto, NodeProto, TensorProto } from './onnx_pb.js';
import { plainDomain } from './operators.js';
import { smallIntegers } from './shapes/stored-value.js';

/** The codes that an input of an operation is dequantized from. */
export interface QuantizedOperand {
  /** Type of the codes; undefined where the model does not define it. */
  readonly dtype: string | undefined;
  readonly dequantizer: NodeProto;
  /** Number of scales: one, one for each index of an axis, one for each block; `computed`: the graph computes them. */
  readonly scales: 'tensor' | 'channel' | 'blocks' | 'computed';
  /** The axis of the operand that the scales are for; undefined where there is one scale, or where it cannot be followed. */
  readonly axis: number | undefined;
}

/** A convolution or a matrix product, and what of it is quantized. */
export interface QuantizedOperation {
  readonly node: NodeProto;
  readonly view: GraphView;
  readonly operands: readonly [QuantizedOperand | undefined, QuantizedOperand | undefined];
  /** Which operand is stored in the model; undefined where both are computed. */
  readonly weight: { readonly index: 0 | 1; readonly rank: number | undefined } | undefined;
}

/** softmax(Q·K)·V. */
export interface AttentionProducts {
  readonly scores: QuantizedOperation;
  readonly softmax: NodeProto;
  readonly mixed: QuantizedOperation;
  /** Whether a pair stands between the scores and Softmax. */
  readonly hasPairOnScores: boolean;
}

export const isQuantize = ({ opType, domain }: NodeProto): boolean =>
  opType === 'QuantizeLinear' && QUANTIZING_DOMAINS.has(domain);
export const isDequantize = ({ opType, domain }: NodeProto): boolean =>
  opType === 'DequantizeLinear' && QUANTIZING_DOMAINS.has(domain);

export const isPairPart = (node: NodeProto): boolean => isQuantize(node) || isDequantize(node);

/** TensorRT reads those of ONNX Runtime as the standard's. */
const QUANTIZING_DOMAINS: ReadonlySet<string> = new Set(['', 'ai.onnx', 'com.microsoft']);

const PRODUCTS: ReadonlySet<string> = new Set(['Conv', 'ConvTranspose', 'Gemm', 'MatMul']);

const MOVES: ReadonlySet<string> = new Set([
  ...rearrangers,
  ...'Cast Dropout Split MaxPool Concat DepthToSpace SpaceToDepth'.split(' '),
]);
/** Whether a node moves values and computes nothing: pairs go through it. A Pad by a constant does not, since the constant has no codes. */
export const isMove = (node: NodeProto): boolean =>
  isOnnxDomain(node.domain) &&
  (MOVES.has(node.opType) || (node.opType === 'Pad' && padMode(node) !== 'constant'));
const padMode = (node: NodeProto): string => textAttribute(node, 'mode', 'constant');
const KEEPS_AXES: ReadonlySet<string> = new Set(['Identity', 'Cast', 'Dropout', 'MaxPool', 'Clip']);

/** Operators between the scores of an attention and its Softmax. */
const SCALES_SCORES: ReadonlySet<string> = new Set(['Mul', 'Div', 'Add', 'Sub', 'Where', 'Reshape', 'Cast']);

const FARTHEST = 16;

/** The pairs of QuantizeLinear and DequantizeLinear in a model, as what they are around reads them. */
export class QuantizedGraph {
  readonly views: readonly GraphView[];
  readonly #scopes = new Map<GraphView, Scope>();
  readonly #stored: Answers<boolean> = new Map();
  readonly #operands: Answers<QuantizedOperand | undefined> = new Map();

  /** `types` are those of the model's graph (`inferDtypes`). */
  constructor(views: readonly GraphView[], types: GraphTypes) {
    this.views = views.filter(isMain);
    const byGraph = new Map<GraphProto | undefined, GraphTypes>();
    const gather = (each: GraphTypes) => {
      for (const [graph, inner] of each.bodies) {
        byGraph.set(graph, inner);
        gather(inner);
      }
    };
    gather(types);
    for (const view of this.views)
      this.#scopes.set(view, {
        uses: new GraphUses(view.graph!),
        types: view.kind === 'graph' ? types : byGraph.get(view.graph),
      });
  }

  producer(name: string, view: GraphView): NodeProto | undefined {
    return this.#find(view, ({ uses }) => uses.producers.get(name));
  }

  constant(name: string, view: GraphView): TensorProto | undefined {
    return this.#find(view, ({ uses }) => uses.constants.get(name));
  }

  dtype(name: string, view: GraphView): string | undefined {
    return this.#find(view, ({ types }) => types?.types.get(name));
  }

  readers(name: string, view: GraphView): readonly NodeProto[] {
    return [...new Set(this.#scopes.get(view)?.uses.readers(name))];
  }

  /** Whether a value is stored in the model, or is computed of nothing but such values. */
  isStored(name: string, view: GraphView, farthest = FARTHEST): boolean {
    if (this.constant(name, view) !== undefined) return true;
    const node = this.producer(name, view);
    if (node === undefined || farthest === 0) return false;
    // Brevitas clips codes to fewer than their type has.
    if (!isMove(node) && !isPairPart(node) && node.opType !== 'Clip') return false;
    return remembered(this.#stored, view, name, false, () =>
      node.input.every((input) => input === '' || this.isStored(input, view, farthest - 1)),
    );
  }

  /** Whether a node pads space with zeros for convolutions alone: TensorRT makes that their own padding, of whatever type they are. */
  isPaddingOfConvolutions(node: NodeProto, view: GraphView): boolean {
    const [output = ''] = node.output;
    const readers = this.readers(output, view);
    return (
      node.opType === 'Pad' &&
      isOnnxDomain(node.domain) &&
      padMode(node) === 'constant' &&
      readers.length > 0 &&
      readers.every(({ opType, input }) => opType === 'Conv' && input[0] === output) &&
      this.#padsWithZeros(node, view) &&
      this.#padsSpace(node, view)
    );
  }

  /** The codes that a value is dequantized from, through nodes that only move values; undefined for other values. */
  operand(name: string, view: GraphView, farthest = FARTHEST): QuantizedOperand | undefined {
    const node = this.producer(name, view);
    if (node === undefined || farthest === 0) return undefined;
    if (isDequantize(node)) return this.#dequantized(node, view);
    if (!isMove(node)) return undefined;
    return remembered(this.#operands, view, name, undefined, () => {
      const sources = node.opType === 'Concat' ? node.input : node.input.slice(0, 1);
      const found = sources.map((input) => this.operand(input, view, farthest - 1));
      const [first] = found;
      if (first === undefined || found.includes(undefined)) return undefined;
      return { ...first, axis: movedAxis(first.axis, node) };
    });
  }

  /** Every convolution and matrix product of the model. */
  operations(): readonly QuantizedOperation[] {
    return this.views.flatMap((view) =>
      view.nodes.filter(isProduct).map((node) => this.#operation(node, view)),
    );
  }

  /** Every attention of which something is quantized. */
  attentions(): readonly { readonly block: AttentionProducts; readonly view: GraphView }[] {
    return this.views.flatMap((view) =>
      view.nodes.flatMap((node) => {
        const block = node.opType === 'Softmax' ? this.#attention(node, view) : undefined;
        const operands = block === undefined ? [] : [...block.scores.operands, ...block.mixed.operands];
        return block === undefined || operands.every((operand) => operand === undefined)
          ? []
          : [{ block, view }];
      }),
    );
  }

  #attention(softmax: NodeProto, view: GraphView): AttentionProducts | undefined {
    const passed = new Set<NodeProto>();
    const scores = this.#scores(softmax.input[0] ?? '', view, passed);
    const mixed = this.#mixed(softmax.output[0] ?? '', view, new Set());
    if (scores === undefined || mixed === undefined) return undefined;
    return {
      scores: this.#operation(scores, view),
      softmax,
      mixed: this.#operation(mixed, view),
      hasPairOnScores: [...passed].some(isDequantize),
    };
  }

  #operation(node: NodeProto, view: GraphView): QuantizedOperation {
    const [first = '', second = ''] = node.input;
    const behind = node.opType === 'Conv' ? this.producer(first, view) : undefined;
    const padding = behind !== undefined && this.isPaddingOfConvolutions(behind, view) ? behind : undefined;
    const index = this.isStored(second, view) ? 1 : this.isStored(first, view) ? 0 : undefined;
    return {
      node,
      view,
      operands: [this.operand(padding?.input[0] ?? first, view), this.operand(second, view)],
      weight: index === undefined ? undefined : { index, rank: this.#rank(node.input[index] ?? '', view) },
    };
  }

  #dequantized(dequantizer: NodeProto, view: GraphView): QuantizedOperand {
    const [codes = '', scale = ''] = dequantizer.input;
    const axis = Number(attributeOf(dequantizer, 'axis')?.i ?? 1);
    const rank = this.#rank(codes, view);
    const scales = this.#scales(dequantizer, scale, view);
    return {
      dtype: this.dtype(codes, view),
      dequantizer,
      scales,
      axis:
        scales === 'tensor' || (axis < 0 && rank === undefined) ? undefined : axis < 0 ? axis + rank! : axis,
    };
  }

  #scales(dequantizer: NodeProto, name: string, view: GraphView): QuantizedOperand['scales'] {
    const scale = this.constant(name, view);
    if (Number(attributeOf(dequantizer, 'block_size')?.i ?? 0) > 0) return 'blocks';
    if (scale === undefined) {
      const node = this.producer(name, view);
      if (!this.isStored(name, view)) return 'computed';
      return node !== undefined && isDequantize(node) ? 'blocks' : 'tensor';
    }
    const dims = scale.dims.map(Number);
    if (dims.every((dim) => dim === 1)) return 'tensor';
    return dims.length > 1 ? 'blocks' : 'channel';
  }

  /** The rank of a stored value. */
  #rank(name: string, view: GraphView, farthest = FARTHEST): number | undefined {
    const tensor = this.constant(name, view);
    if (tensor !== undefined) return tensor.dims.length;
    const node = this.producer(name, view);
    if (node === undefined || farthest === 0) return undefined;
    const keepsRank = KEEPS_AXES.has(node.opType) || node.opType === 'Transpose' || isPairPart(node);
    return keepsRank ? this.#rank(node.input[0] ?? '', view, farthest - 1) : undefined;
  }

  /** `passed` gathers the nodes on the way. */
  #scores(name: string, view: GraphView, passed: Set<NodeProto>): NodeProto | undefined {
    const node = this.producer(name, view);
    if (node === undefined || passed.has(node) || passed.size > FARTHEST) return undefined;
    if (node.opType === 'MatMul')
      return node.input.some((input) => this.isStored(input, view)) ? undefined : node;
    const isPair = isPairPart(node);
    if (!SCALES_SCORES.has(node.opType) && !isPair) return undefined;
    for (const input of isPair ? node.input.slice(0, 1) : node.input) {
      const way = new Set([...passed, node]);
      const found = this.#scores(input, view, way);
      if (found === undefined) continue;
      for (const each of way) passed.add(each);
      return found;
    }
    return undefined;
  }

  #mixed(name: string, view: GraphView, seen: Set<string>): NodeProto | undefined {
    if (seen.has(name) || seen.size > FARTHEST) return undefined;
    seen.add(name);
    for (const node of this.readers(name, view)) {
      if (node.opType === 'MatMul' && node.input[0] === name && !this.isStored(node.input[1] ?? '', view))
        return node;
      if (node.opType !== 'Cast' && node.opType !== 'Dropout' && !isPairPart(node)) continue;
      const found = this.#mixed(node.output[0] ?? '', view, seen);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #padsWithZeros(pad: NodeProto, view: GraphView): boolean {
    const [, , value = ''] = pad.input;
    if (value === '') return (attributeOf(pad, 'value')?.f ?? 0) === 0;
    const tensor = this.constant(value, view);
    const parts = tensor && [tensor.rawData, tensor.floatData, tensor.int32Data];
    return parts?.every((values) => values.every((each) => each === 0)) === true;
  }

  /** Whether sizes are stored, and the axes of batch and channels are not padded. */
  #padsSpace(pad: NodeProto, view: GraphView): boolean {
    const [, pads = '', , axes = ''] = pad.input;
    const sizes = attributeOf(pad, 'pads')?.ints.map(Number) ?? smallIntegers(this.constant(pads, view));
    const padded = axes === '' ? undefined : smallIntegers(this.constant(axes, view));
    const count = (sizes?.length ?? 0) / 2;
    return (
      sizes?.every((size, index) => size === 0 || (padded?.[index % count] ?? index % count) >= 2) === true
    );
  }

  #find<T>(view: GraphView, of: (scope: Scope) => T | undefined): T | undefined {
    for (let at: GraphView | undefined = view; at !== undefined; at = at.parent) {
      const scope = this.#scopes.get(at);
      const found = scope === undefined ? undefined : of(scope);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

type Answers<T> = Map<GraphView, Map<string, T>>;

/** Asks once for each value; `meanwhile` is the answer where the question leads back to itself. */
function remembered<T>(answers: Answers<T>, view: GraphView, name: string, meanwhile: T, ask: () => T): T {
  const known = answers.get(view) ?? new Map<string, T>();
  answers.set(view, known);
  if (known.has(name)) return known.get(name) as T;
  known.set(name, meanwhile);
  const answer = ask();
  known.set(name, answer);
  return answer;
}

const isProduct = ({ opType, domain }: NodeProto): boolean => domain === '' && PRODUCTS.has(opType);

interface Scope {
  readonly uses: GraphUses;
  readonly types: GraphTypes | undefined;
}

/** Where an axis of a node's input is in its output. */
function movedAxis(axis: number | undefined, node: NodeProto): number | undefined {
  if (axis === undefined || KEEPS_AXES.has(node.opType)) return axis;
  const order = node.opType === 'Transpose' ? attributeOf(node, 'perm')?.ints.map(Number) : undefined;
  const moved = order?.indexOf(axis) ?? -1;
  return moved < 0 ? undefined : moved;
}

/** Stored INT8 or UINT8 numbers that a Cast turns into floating point: weights that were quantized without a DequantizeLinear. */
export interface CastCodes {
  readonly codes: TensorProto;
  /** The value that holds them. */
  readonly name: string;
  /** The nodes that move them in front of the Cast; nothing else reads what these make. */
  readonly movers: readonly NodeProto[];
  readonly cast: NodeProto;
}

const movers: ReadonlySet<string> = new Set(rearrangers);
const codeTypes: ReadonlySet<number> = new Set([dtypes.int8.onnx, dtypes.uint8.onnx]);
const floatTypes: ReadonlySet<number> = new Set(
  (['float32', 'float16', 'bfloat16'] as const satisfies readonly Dtype[]).map((type) => dtypes[type].onnx),
);

/** The node that alone reads a value of a graph; undefined for an output too. */
export function onlyReader(name: string, graph: GraphProto, uses: GraphUses): NodeProto | undefined {
  const [first, ...others] = uses.readers(name);
  const isOutput = graph.output.some((output) => output.name === name);
  return others.length === 0 && !isOutput ? first : undefined;
}

/** Every such place of one graph, without its bodies. */
export function castCodes(graph: GraphProto, uses: GraphUses): readonly CastCodes[] {
  return graph.node.flatMap((cast) => {
    if (cast.opType !== 'Cast' || !isOnnxDomain(cast.domain)) return [];
    if (!floatTypes.has(Number(attributeOf(cast, 'to')?.i ?? 0))) return [];
    const between: NodeProto[] = [];
    let [name = ''] = cast.input;
    for (;;) {
      const codes = uses.constants.get(name);
      if (codes !== undefined)
        return codeTypes.has(codes.dataType) ? [{ codes, name, movers: between, cast }] : [];
      const mover = uses.producers.get(name);
      if (mover === undefined || !movers.has(mover.opType) || !isOnnxDomain(mover.domain)) return [];
      if (onlyReader(name, graph, uses) === undefined || between.includes(mover)) return [];
      between.unshift(mover);
      name = mover.input[0] ?? '';
    }
  });
}

const ofQuantizedModels: ReadonlySet<string> = new Set(
  'QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul ConvInteger MatMulInteger'.split(
    ' ',
  ),
);

/** Throws TF_NOT_QUANTIZABLE for a model with quantized operators. */
export function assertFloat(proto: ModelProto, path: string): void {
  const quantized = proto.graph?.node.find(
    ({ domain, opType }) =>
      (['', 'com.microsoft'].includes(plainDomain(domain)) && ofQuantizedModels.has(opType)) ||
      /^TRT_.*Quantize/.test(opType),
  );
  if (quantized === undefined) return;
  throw new TrtforgeError(
    'TF_NOT_QUANTIZABLE',
    `${path} is quantized already: it has ${quantized.opType} "${quantized.name || quantized.output[0]}".`,
    {
      remedy:
        'Quantize the FP32 original. To build this model, type what is around its pairs: `trtforge convert --precision fp16`; `trtforge inspect` reports misplaced pairs.',
    },
  );
}
