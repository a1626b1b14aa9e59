import { attribute } from 'trtforge/onnx';
import { layerNorm, linear } from './layers.js';
import type { Network } from './network.js';

export interface ExportedShape {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly vocabulary: number;
  readonly positions: number;
}

/** Named by the bytes of their weights: each layer of 1024 is 48 MiB. */
export const exportedShapes = {
  tiny: { layers: 2, width: 32, heads: 4, vocabulary: 100, positions: 64 },
  '1GiB': { layers: 21, width: 1024, heads: 16, vocabulary: 3584, positions: 512 },
  '2.5GiB': { layers: 53, width: 1024, heads: 16, vocabulary: 3584, positions: 512 },
} as const satisfies Record<string, ExportedShape>;

/** The kinds of constants that PyTorch's tracing writes as nodes, and sizes that it computes at run time. */
class Traced {
  readonly #network: Network;
  #count = 0;

  constructor(network: Network) {
    this.#network = network;
  }

  node(opType: string, ...inputs: readonly string[]): string {
    return this.#network.node(opType, `/${opType}_${this.#count++}`, inputs);
  }

  number(value: number): string {
    const bytes = new Uint8Array(Float32Array.of(value).buffer);
    return this.#constant({ dtype: 'float32', shape: [], bytes });
  }

  integers(...values: readonly number[]): string {
    const bytes = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
    return this.#constant({ dtype: 'int64', shape: [values.length], bytes });
  }

  /** The size of one axis of `x`, as an int64 tensor of shape [1]. */
  size(x: string, axis: number): string {
    const bytes = new Uint8Array(BigInt64Array.of(BigInt(axis)).buffer);
    const index = this.#constant({ dtype: 'int64', shape: [], bytes });
    return this.node('Unsqueeze', this.node('Gather', this.node('Shape', x), index), this.integers(0));
  }

  shape(...sizes: readonly string[]): string {
    return this.#network.node('Concat', `/Concat_${this.#count++}`, sizes, { axis: 0 });
  }

  transposed(x: string, ...perm: readonly number[]): string {
    return this.#network.node('Transpose', `/Transpose_${this.#count++}`, [x], { perm });
  }

  cast(x: string, dtype: 'float32' | 'int64'): string {
    return this.#network.cast(`/Cast_${this.#count++}`, x, dtype);
  }

  #constant(value: Parameters<typeof attribute.tensor>[0]): string {
    return this.#network.node('Constant', `/Constant_${this.#count++}`, [], {
      value: attribute.tensor(value),
    });
  }
}

/**
 * A transformer encoder as tracing wrote it, with nothing folded: `input_ids` and `attention_mask` [batch, sequence] int64 to `last_hidden_state` [batch, sequence,
 * width] float32. Constants are nodes, and every Reshape has a shape of its own, computed from Shape, Gather, Unsqueeze and Concat.
 */
export function exportedEncoder(network: Network, shape: ExportedShape): void {
  const { width, heads } = shape;
  const traced = new Traced(network);
  const ids = network.input('input_ids', 'int64', ['batch', 'sequence']);
  const mask = network.input('attention_mask', 'int64', ['batch', 'sequence']);
  const words = network.weight('embeddings.word.weight', [shape.vocabulary, width], { deviation: 1 });
  const table = network.weight('embeddings.position.weight', [shape.positions, width], { deviation: 0.5 });
  const end = traced.node('Squeeze', traced.size(ids, 1), traced.integers(0));
  const [zero, one] = [0, 1].map((value) =>
    traced.node('Squeeze', traced.integers(value), traced.integers(0)),
  );
  const positions = traced.node('Unsqueeze', traced.node('Range', zero!, end, one!), traced.integers(0));
  const placed = traced.node('Expand', positions, traced.shape(traced.size(ids, 0), traced.size(ids, 1)));
  const embedded = traced.node(
    'Add',
    traced.node('Gather', words, ids),
    traced.node('Gather', table, placed),
  );
  const seen = traced.cast(traced.node('Unsqueeze', mask, traced.integers(1, 2)), 'float32');
  const penalty = traced.node('Mul', traced.node('Sub', traced.number(1), seen), traced.number(-10_000));

  const split = (x: string) => {
    const sizes = [
      traced.size(x, 0),
      traced.size(x, 1),
      traced.integers(heads),
      traced.integers(width / heads),
    ];
    return traced.node('Reshape', x, traced.shape(...sizes));
  };
  let x = layerNorm(network, 'embeddings.norm', embedded, width);
  for (let layer = 0; layer < shape.layers; layer++) {
    const name = `encoder.layer.${layer}`;
    const projected = (which: string) => split(linear(network, `${name}.${which}`, x, width, width));
    const [query, key, value] = [projected('query'), projected('key'), projected('value')];
    const queries = traced.transposed(query, 0, 2, 1, 3);
    const depth = traced.cast(traced.size(queries, 3), 'float32');
    const scale = traced.node('Sqrt', traced.node('Div', traced.number(1), traced.node('Sqrt', depth)));
    const scores = traced.node(
      'MatMul',
      traced.node('Mul', queries, scale),
      traced.node('Mul', traced.transposed(key, 0, 2, 3, 1), scale),
    );
    const weights = traced.node('Softmax', traced.node('Add', scores, penalty));
    const mixed = traced.transposed(
      traced.node('MatMul', weights, traced.transposed(value, 0, 2, 1, 3)),
      ...[0, 2, 1, 3],
    );
    const sizes = [traced.size(mixed, 0), traced.size(mixed, 1), traced.integers(width)];
    const merged = traced.node('Reshape', mixed, traced.shape(...sizes));
    const attended = traced.node('Add', linear(network, `${name}.output`, merged, width, width), x);
    x = layerNorm(network, `${name}.attention.norm`, attended, width);
    const wide = linear(network, `${name}.up`, x, width, 4 * width);
    const erf = traced.node('Erf', traced.node('Div', wide, traced.number(Math.SQRT2)));
    const product = traced.node('Mul', wide, traced.node('Add', erf, traced.number(1)));
    const half = traced.node('Mul', product, traced.number(0.5));
    const narrow = linear(network, `${name}.down`, half, 4 * width, width, { gain: 2 });
    const last = layer === shape.layers - 1;
    const output = last ? 'last_hidden_state' : undefined;
    x = layerNorm(network, `${name}.norm`, traced.node('Add', narrow, x), width, output);
  }
  network.output('last_hidden_state', 'float32', ['batch', 'sequence', width]);
}
