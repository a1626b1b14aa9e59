import { TrtforgeError } from '../../errors.js';
import { visitTensors } from './graph.js';
import type { ModelProto, TensorProto } from './onnx_pb.js';
import { decodeMarker, MARKER_FIELD, type PayloadTable } from './payload.js';
import { Collected, type Rewritten, readTag } from './rewrite.js';
import type { WeightStream } from './weight.js';
import { recordHeader, type WireReader } from './wire.js';

const RAW_DATA_FIELD = 9;

/** Puts a raw_data record in the place of the marker of an encoded TensorProto. */
export function insertPayload(
  reader: WireReader,
  start: number,
  end: number,
  embedded: PayloadTable<WeightStream>,
): Rewritten | undefined {
  reader.position = start;
  while (reader.position < end) {
    const recordStart = reader.position;
    const { field, wireType } = readTag(reader, end);
    const contentStart = reader.skip(wireType, recordStart, end);
    if (field !== MARKER_FIELD) continue;
    const recordEnd = reader.position;
    const marker = decodeMarker(reader.copy(contentStart, recordEnd - contentStart));
    const payload = embedded.at(marker);
    if (payload === undefined)
      throw new TrtforgeError('TF_INTERNAL', 'A tensor of another model was written.');
    const out = new Collected();
    out.add(reader.copy(start, recordStart - start));
    out.add(recordHeader(RAW_DATA_FIELD, payload.byteLength));
    out.add({ payload: marker.entry, length: payload.byteLength });
    out.add(reader.copy(recordEnd, end - recordEnd));
    return out;
  }
  return undefined;
}

/** Runs `action` while some tensors of `proto` have the content of their replacements; afterwards they are as before. */
export function withReplacements<T>(
  proto: ModelProto,
  replace: (tensor: TensorProto) => TensorProto | undefined,
  action: () => T,
): T {
  const originals = new Map<TensorProto, TensorProto>();
  try {
    for (const { tensor } of visitTensors(proto)) {
      if (originals.has(tensor)) continue;
      const replacement = replace(tensor);
      if (replacement === undefined) continue;
      originals.set(tensor, { ...tensor });
      setContent(tensor, replacement);
    }
    return action();
  } finally {
    for (const [tensor, content] of originals) setContent(tensor, content);
  }
}

function setContent(tensor: TensorProto, content: TensorProto): void {
  for (const key of Object.keys(tensor)) Reflect.deleteProperty(tensor, key);
  Object.assign(tensor, content);
}
