import { TrtforgeError } from '../../errors.js';
import { encodeVarints, type WireReader, WireType } from './wire.js';

/** A piece of a rewritten file: bytes in memory, or a payload (by its index) that is streamed in its place. */
export type Piece = Uint8Array | { readonly payload: number; readonly length: number };

export interface Rewritten {
  readonly pieces: Piece[];
  /** Bytes of all pieces together. */
  readonly length: number;
}

/** Returns what a TensorProto's content becomes, or undefined to leave it byte for byte. */
export type TensorRewriter = (reader: WireReader, start: number, end: number) => Rewritten | undefined;

type Message = 'model' | 'training' | 'graph' | 'function' | 'node' | 'attribute' | 'sparse' | 'tensor';

/** Every way from ModelProto to a TensorProto: message to field number to message. */
const messages: Record<Message, Readonly<Record<number, Message>>> = {
  model: { 7: 'graph', 20: 'training', 25: 'function' },
  training: { 1: 'graph', 2: 'graph' },
  graph: { 1: 'node', 5: 'tensor', 15: 'sparse' },
  function: { 7: 'node', 11: 'attribute' },
  node: { 5: 'attribute' },
  attribute: { 5: 'tensor', 6: 'graph', 10: 'tensor', 11: 'graph', 22: 'sparse', 23: 'sparse' },
  sparse: { 1: 'tensor', 2: 'tensor' },
  tensor: {},
};

/** Protobuf implementations reject deeper nesting. */
export const DEEPEST = 100;

/**
 * Walks a serialized ModelProto, gives every TensorProto in it to `rewriteTensor`, and returns the file that results:
 * untouched stretches are copied, the lengths of enclosing messages follow. Throws TF_ONNX_CORRUPT, TF_ONNX_TRUNCATED or TF_ONNX_TOO_LARGE.
 */
export function rewriteTensors(reader: WireReader, rewriteTensor: TensorRewriter, limit: number): Rewritten {
  let copied = 0;
  const copy = (start: number, end: number, out: Collected) => {
    if (end === start) return;
    copied += end - start;
    if (copied > limit) {
      throw beyondLimit(reader.path, limit);
    }
    out.add(reader.copy(start, end - start), end - start);
  };

  const walk = (message: Message, start: number, end: number, depth: number): Rewritten | undefined => {
    if (message === 'tensor') return rewriteTensor(reader, start, end);
    if (depth > DEEPEST) throw reader.broken(start, `messages nest deeper than ${DEEPEST}`);
    const children = messages[message];
    const out = new Collected();
    let runStart = start;
    reader.position = start;
    while (reader.position < end) {
      reader.outermost = depth === 1;
      const recordStart = reader.position;
      const { field, wireType } = readTag(reader, end);
      const contentStart = reader.skip(wireType, recordStart, end);
      const contentEnd = reader.position;
      const child = children[field];
      reader.outermost = false;
      if (child === undefined) continue;
      if (wireType !== WireType.bytes) throw reader.broken(recordStart, `a ${child} is not a message`);
      const rewritten = walk(child, contentStart, contentEnd, depth + 1);
      reader.position = contentEnd;
      if (rewritten === undefined) continue;
      copy(runStart, recordStart, out);
      out.add(encodeVarints(field * 8 + wireType, rewritten.length));
      out.addAll(rewritten);
      runStart = contentEnd;
    }
    if (out.length === 0) return undefined;
    copy(runStart, end, out);
    return out;
  };

  const rewritten = walk('model', 0, reader.size, 1);
  if (rewritten !== undefined) return rewritten;
  const whole = new Collected();
  copy(0, reader.size, whole);
  return whole;
}

export const beyondLimit = (path: string, limit: number): TrtforgeError =>
  new TrtforgeError('TF_ONNX_TOO_LARGE', `${path} has more than ${limit} bytes that are not weights.`);

/** Reads the tag of a record. */
export function readTag(reader: WireReader, end: number): { field: number; wireType: number } {
  const start = reader.position;
  const tag = reader.varint(end);
  const field = Math.floor(tag / 8);
  if (field < 1 || field > 536_870_911) throw reader.broken(start, `field number ${field} does not exist`);
  return { field, wireType: tag % 8 };
}

/** Pieces with their total length. */
export class Collected implements Rewritten {
  readonly pieces: Piece[] = [];
  length = 0;

  add(piece: Piece, length = piece.length): void {
    this.pieces.push(piece);
    this.length += length;
  }

  addAll(other: Rewritten): void {
    for (const piece of other.pieces) this.pieces.push(piece);
    this.length += other.length;
  }
}
