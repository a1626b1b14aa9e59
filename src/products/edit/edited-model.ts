import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { openFile } from '../../base/files/byte-source.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import type { BackEnd } from '../../engines/runtime/back-end.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { definedNames, freeName, valueNames } from '../../formats/onnx/graph.js';
import type { OnnxModel } from '../../formats/onnx/model.js';
import { type GraphProto, type TensorProto, TensorProtoSchema } from '../../formats/onnx/onnx_pb.js';
import { feedInputs } from '../../formats/onnx/values.js';
import type { WeightStream } from '../../formats/onnx/weight.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import type { Tensor } from '../../formats/tensor/tensor.js';

/** What steps and proofs run with: progress, cancellation, and what runs models. */
export interface EditContext extends WorkContext {
  /** Default: ONNX Runtime on the CPU, node by node. */
  readonly backEnds?: readonly BackEnd[];
}

/** What an input or an output of the edited model is in the original. */
export interface Link {
  /** The value of the original; null where it has none. */
  readonly source: string | null;
  /** The type it has now, where that is another. */
  readonly cast?: Dtype;
}

/** A model while it is edited, and how its inputs and outputs follow from the original's. */
export class Editing {
  readonly model: OnnxModel;
  readonly #work: string;
  #files = 0;
  /** Values of new weights that are too large for memory, by their tensors. */
  readonly streams = new Map<TensorProto, WeightStream>();
  readonly inputs: Map<string, Link>;
  readonly outputs: Map<string, Link>;
  /** Sizes that open dimensions were set to: of a value of the original, by place and by name. */
  readonly sizes: {
    readonly input: string | null;
    readonly axis: number;
    readonly symbol: string | null;
    readonly size: number;
  }[] = [];
  /** Axes of inputs that the original takes with one size alone. */
  readonly opened: { readonly input: string; readonly axis: number; readonly stored: number }[] = [];
  /** Values of the original under other names. */
  readonly #renamed = new Map<string, string>();
  readonly #original: ReadonlySet<string>;

  /** Whether a step has changed what the last bit of results is. */
  isRounded = false;
  /** Whether steps may not. */
  readonly isExact: boolean;

  constructor(model: OnnxModel, work: string, isExact = false) {
    this.model = model;
    this.isExact = isExact;
    this.#work = work;
    const linked = (values: readonly { readonly name: string }[]) =>
      new Map(values.map(({ name }) => [name, { source: name }]));
    this.inputs = linked(feedInputs(this.graph));
    this.outputs = linked(this.graph.output);
    this.#original = definedNames({ graph: this.graph, nodes: this.graph.node, function: undefined });
  }

  get graph(): GraphProto {
    return this.model.proto.graph!;
  }

  /** The value of the original that a value is; null where the original has none. */
  originOf(name: string): string | null {
    const origin = this.#renamed.get(name) ?? name;
    return this.#original.has(origin) ? origin : null;
  }

  noteRenamed(from: string, to: string): void {
    this.#renamed.set(to, this.#renamed.get(from) ?? from);
    this.#renamed.set(from, '');
  }

  /** A name that no value of the model has, in no graph of it. */
  freeName(stem: string): string {
    return freeName(this.names(), stem);
  }

  /** Every name that stands for a value. */
  names(): Set<string> {
    return valueNames(this.model.proto);
  }

  /** A path for a file that is not kept. */
  file(what: string): string {
    return join(this.#work, `${what}-${this.#files++}`);
  }

  /** A new weight, of a body where one is passed. Large values go into a file. */
  storeWeight(name: string, { dtype, shape, bytes }: Tensor, graph = this.graph): string {
    const tensor = create(TensorProtoSchema, { name, dims: shape.map(BigInt), dataType: dtypes[dtype].onnx });
    if (bytes.length <= IN_MEMORY) tensor.rawData = new Uint8Array(bytes);
    else {
      const path = this.file('weight');
      writeFileSync(path, bytes);
      this.streams.set(tensor, { dtype, byteLength: bytes.length, chunks: (size) => chunksOf(path, size) });
    }
    graph.initializer.push(tensor);
    return name;
  }

  /** The values of a weight, also of a new one. */
  weight(tensor: TensorProto): WeightStream {
    return this.streams.get(tensor) ?? this.model.weight(tensor);
  }

  /** Throws TF_EDIT_UNKNOWN where a name is not among those known. */
  known(what: string, name: string, known: Iterable<string>): string {
    const names = [...known];
    if (names.includes(name)) return name;
    const listed = names.length <= MOST_LISTED ? ` It has ${names.join(', ')}.` : '';
    throw new TrtforgeError('TF_EDIT_UNKNOWN', `${this.model.path} has no ${what} "${name}".`, {
      remedy:
        names.length === 0
          ? `It has no ${what} at all: leave the step out.`
          : `${didYouMean(name, names)}${listed}`.trim() ||
            'Run `trtforge inspect` on the model, which lists them.',
      details: { name, known: names.slice(0, MOST_DETAILED) },
    });
  }
}

const MOST_LISTED = 20;
const MOST_DETAILED = 200;

/** Bytes of a new weight that stay in memory. */
export const IN_MEMORY = 1 << 20;

function* chunksOf(path: string, chunkBytes = IN_MEMORY): Generator<Uint8Array> {
  const file = openFile(path);
  try {
    const chunk = new Uint8Array(Math.ceil(chunkBytes / 16) * 16);
    for (let at = 0; at < file.size; at += chunk.length)
      yield chunk.subarray(0, file.read(chunk, at, Math.min(chunk.length, file.size - at)));
  } finally {
    file.close();
  }
}

/** What a step did, in one phrase; null where it changed nothing. */
export type Done = string | null;

export const impossible = (message: string, remedy?: string) =>
  new TrtforgeError('TF_EDIT_IMPOSSIBLE', message, remedy === undefined ? {} : { remedy });
