import { dirname, join } from 'node:path';
import { type ByteSource, closing, keepFile, openFile } from '../../base/files/byte-source.js';
import { isText, noteInput } from '../../base/files/user-files.js';
import { shellQuote } from '../../base/text/shell-line.js';
import { TrtforgeError } from '../../errors.js';
import { decodeModel } from './decode.js';
import { ExternalFiles, locationOf } from './external-data.js';
import { visitTensors } from './graph.js';
import type { ModelProto, NodeProto, TensorProto } from './onnx_pb.js';
import { type OpenOptions, scanModel } from './scan.js';
import { locateWeight, type Weight, type WeightStream } from './weight.js';
import { markerOf } from './wire.js';

const HEAD_BYTES = 4096;

const magics: readonly (readonly [magic: string, what: string, remedy: string])[] = [
  [
    'ftrt',
    'a TensorRT plan, not an ONNX model',
    'Use `trtforge engine inspect` on the plan, or pass the .onnx file it was built from.',
  ],
  [
    'vtrt',
    'a TensorRT-RTX plan, not an ONNX model',
    'Use `trtforge engine inspect` on the plan, or pass the .onnx file it was built from.',
  ],
  [
    'PK\u0003\u0004',
    'a ZIP archive (a PyTorch checkpoint, an npz or a packed model), not an ONNX model',
    'Unpack it or export the model to ONNX.',
  ],
  ['\u001f\u008b', 'gzip-compressed', 'Decompress it first.'],
  ['\u0089HDF', 'an HDF5 file (a Keras model), not an ONNX model', 'Export the model to ONNX.'],
  ['GGUF', 'a GGUF file, not an ONNX model', 'Export the model to ONNX.'],
  ['\u007fELF', 'a program or library, not an ONNX model', 'Pass the .onnx file itself.'],
  ['ORTM', 'an ONNX Runtime .ort model, not ONNX', 'Pass the .onnx file it was made from.'],
];

/** Throws TF_ONNX_NOT_A_MODEL with what the file is, when its first bytes are those of something people mistake for a model. */
function rejectOtherFormats(source: ByteSource): void {
  const otherFormat = (what: string, remedy?: string) =>
    new TrtforgeError('TF_ONNX_NOT_A_MODEL', `${source.path} is ${what}.`, { remedy });
  if (source.size === 0) throw otherFormat('empty', 'Export or download the model again.');
  const buffer = new Uint8Array(Math.min(HEAD_BYTES, source.size));
  const head = buffer.subarray(0, source.read(buffer, 0, buffer.length));
  const text = Buffer.from(head.buffer, head.byteOffset, head.length).toString('latin1');

  if (text.startsWith('version https://git-lfs.github.com/spec/')) {
    const size = /\nsize (\d+)/.exec(text)?.[1];
    throw otherFormat(
      `a Git-LFS pointer, not the model${size === undefined ? '' : ` (the model has ${size} bytes)`}`,
      'Run git lfs pull in its repository, or download the file itself.',
    );
  }
  for (const [magic, what, remedy] of magics) {
    if (text.startsWith(magic)) throw otherFormat(what, remedy);
  }
  if (text.slice(4, 5) === '{' && /^.{4}\{\s*"/s.test(text) && head.length > 8 && head[3] === 0) {
    throw otherFormat(
      'a plan with a JSON header in front, not an ONNX model',
      'Use `trtforge engine inspect` on the plan.',
    );
  }
  if (isText(head)) {
    const html = /^\s*<(!doctype|html)/i.test(text);
    throw otherFormat(
      html ? 'a web page, not an ONNX model' : 'a text file, not an ONNX model',
      html ? 'Download the file again.' : 'Pass the binary .onnx file.',
    );
  }
}

/** Messages whose larger tensors have their values elsewhere: an opened file, or a builder's generators. What `writeModel` takes. */
export interface ModelLike {
  readonly proto: ModelProto;
  /** The values of any tensor of `proto`, also of a copy of one. */
  weight(tensor: TensorProto): WeightStream;
  /** Files the values come from; a writer rejects to write over them. */
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
export function openModel(path: string, options: OpenOptions = {}): OnnxModel {
  const model = modelOf(openFile(path), options);
  noteFiles(model, options);
  return model;
}

function noteFiles({ path, proto }: OnnxModel, { weightsFolder = dirname(path) }: OpenOptions = {}): void {
  noteInput(path);
  const locations = new Set(Array.from(visitTensors(proto), ({ tensor }) => locationOf(tensor)));
  for (const location of locations) {
    if (location === undefined) continue;
    noteInput(join(weightsFolder, location));
    keepFile(join(weightsFolder, location), path);
  }
}

/** The models of files, for those that are kept open. */
const views = new WeakMap<ByteSource, OnnxModel>();

/**
 * Reads a model that nobody changes, and closes it: the readers of a file that is kept open (`keepingFiles`) share one. Throws what opening it and `read` throw.
 */
export function viewModel<T>(path: string, read: (model: OnnxModel) => T): T {
  const file = openFile(path);
  const model = views.get(file) ?? modelOf(file);
  views.set(file, model);
  noteFiles(model);
  return closing(model, read);
}

/** Opens a model of its own, which `edit` may change, and closes it. Throws what opening it and `edit` throw. */
export const editModel = <T>(path: string, edit: (model: OnnxModel) => T, options: OpenOptions = {}): T =>
  closing(openModel(path, options), edit);

/** The same over any source of bytes; closes it when it throws. */
export function modelOf(source: ByteSource, options: OpenOptions = {}): OnnxModel {
  try {
    return readModel(source, options);
  } catch (error) {
    source.close();
    throw error;
  }
}

function readModel(source: ByteSource, options: OpenOptions): OnnxModel {
  rejectOtherFormats(source);
  const { skeleton, payloads } = scanModel(source, options);
  const proto = decodeModel(source.path, skeleton);
  if (proto.graph === undefined) {
    throw new TrtforgeError('TF_ONNX_NOT_A_MODEL', `${source.path} is not an ONNX model: it has no graph.`);
  }
  const external = new ExternalFiles(source.path, options.weightsFolder);
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
          `Tensor "${tensor.name}" belongs to another model than ${source.path}.`,
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

/** Whether a node is a compiled engine, which ONNX Runtime's provider loads in its place. https://onnxruntime.ai/docs/execution-providers/EP-Context-Design.html */
export const isWrappedEngine = ({ opType }: NodeProto): boolean => opType === 'EPContext';

/** Whether a provider loads a compiled engine in the place of nodes. */
export const wrapsEngine = ({ graph }: ModelProto): boolean => graph?.node.some(isWrappedEngine) ?? false;

export const WRAPPED_ENGINE =
  'is an engine of an execution provider, wrapped for ONNX Runtime: nothing is left to build, convert or quantize';

/** What such a file is for. */
export const wrappedEngineRemedy = (path: string): string =>
  `Pass the model that it was made from. \`trtforge engine inspect ${shellQuote(path)}\` shows the plan, and \`trtforge run ${shellQuote(path)} --provider tensorrt\` runs it.`;

/** Throws TF_ONNX_NOT_A_MODEL for a file that is an engine and no model. */
export function rejectWrappedEngine(path: string, proto: ModelProto): void {
  const node = proto.graph?.node.find(isWrappedEngine);
  if (node === undefined) return;
  throw new TrtforgeError('TF_ONNX_NOT_A_MODEL', `The node "${node.name}" of ${path} ${WRAPPED_ENGINE}.`, {
    remedy: wrappedEngineRemedy(path),
  });
}
