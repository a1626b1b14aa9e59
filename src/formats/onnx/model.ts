import { dirname, join } from 'node:path';
import { type ByteSource, openFile } from '../../base/files/byte-source.js';
import { noteInput } from '../../base/files/user-files.js';
import { TrtforgeError } from '../../errors.js';
import { DecodeError, decodeModel, TooLargeError } from './decode.js';
import { ExternalFiles, locationOf } from './external-data.js';
import { visitTensors } from './graph.js';
import type { ModelProto, TensorProto } from './onnx_pb.js';
import { markerOf } from './payload.js';
import { refuseOtherFormats } from './recognize.js';
import { type ScanOptions, scanModel } from './scan.js';
import { locateWeight, type Weight, type WeightStream } from './weight.js';

/** Messages whose larger tensors have their values elsewhere: an opened file, or a builder's generators. What `writeModel` takes. */
export interface ModelLike {
  readonly proto: ModelProto;
  /** The values of any tensor of `proto`, also of a copy of one. */
  weight(tensor: TensorProto): WeightStream;
  /** Files the values come from; a writer refuses to write over them. */
  readonly files: () => readonly string[];
}

/** An ONNX file, decoded without its weights. Small tensors (up to 1 KiB) are in `proto` as usual, larger ones only have names, types and shapes there. */
export interface OnnxModel extends ModelLike {
  readonly path: string;
  /** Bytes of the .onnx file itself. */
  readonly size: number;
  weight(tensor: TensorProto): Weight;
  readonly external: ExternalFiles;
  close(): void;
}

/**
 * Opens an ONNX model of any size; reads its structure, not its weights. The caller closes it.
 * Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_ONNX_NOT_A_MODEL, TF_ONNX_TRUNCATED, TF_ONNX_CORRUPT, TF_ONNX_TOO_LARGE.
 */
export function openModel(path: string, options: ScanOptions = {}): OnnxModel {
  const model = modelOf(openFile(path), options);
  noteInput(path);
  const locations = new Set(Array.from(visitTensors(model.proto), ({ tensor }) => locationOf(tensor)));
  for (const location of locations) if (location !== undefined) noteInput(join(dirname(path), location));
  return model;
}

/** The same over any source of bytes; closes it when it throws. */
export function modelOf(source: ByteSource, options: ScanOptions = {}): OnnxModel {
  try {
    return readModel(source, options);
  } catch (error) {
    source.close();
    throw error;
  }
}

function readModel(source: ByteSource, options: ScanOptions): OnnxModel {
  refuseOtherFormats(source);
  const { skeleton, payloads } = scanModel(source, options);
  const proto = decodeSkeleton(source.path, skeleton);
  if (proto.graph === undefined) {
    throw new TrtforgeError('TF_ONNX_NOT_A_MODEL', `${source.path} is not an ONNX model: it holds no graph.`);
  }
  const external = new ExternalFiles(source.path);
  const files = {
    source,
    external,
    deferred: (tensor: TensorProto) => {
      const marker = markerOf(tensor);
      if (marker === undefined) return undefined;
      const payload = payloads.at(marker);
      if (payload === undefined) {
        throw new TrtforgeError(
          'TF_INTERNAL',
          `Tensor «${tensor.name}» belongs to another model than ${source.path}.`,
        );
      }
      return payload;
    },
  };
  return {
    path: source.path,
    size: source.size,
    proto,
    external,
    weight: (tensor) => locateWeight(tensor, files),
    files: () => [source.path, ...external.opened()],
    close: () => {
      external.close();
      source.close();
    },
  };
}

function decodeSkeleton(path: string, skeleton: Uint8Array): ModelProto {
  try {
    return decodeModel(skeleton);
  } catch (cause) {
    if (!(cause instanceof DecodeError)) throw cause;
    if (cause instanceof TooLargeError)
      throw new TrtforgeError('TF_ONNX_TOO_LARGE', `${path} has ${cause.message}.`, { cause });
    throw new TrtforgeError('TF_ONNX_CORRUPT', `${path} is not a sound ONNX file: ${cause.message}.`, {
      cause,
    });
  }
}
