import type { ByteSource } from '../../base/files/byte-source.js';
import { isText } from '../../base/files/user-files.js';
import { TrtforgeError } from '../../errors.js';

const HEAD_BYTES = 4096;

const magics: readonly (readonly [magic: string, what: string, remedy: string])[] = [
  [
    'ftrt',
    'a TensorRT plan, not an ONNX model',
    'Use trtforge engine inspect on the plan, or give the .onnx file it was built from.',
  ],
  [
    'vtrt',
    'a TensorRT-RTX plan, not an ONNX model',
    'Use trtforge engine inspect on the plan, or give the .onnx file it was built from.',
  ],
  [
    'PK\u0003\u0004',
    'a ZIP archive (a PyTorch checkpoint, an npz or a packed model), not an ONNX model',
    'Unpack it or export the model to ONNX.',
  ],
  ['\u001f\u008b', 'gzip-compressed', 'Decompress it first.'],
  ['\u0089HDF', 'an HDF5 file (a Keras model), not an ONNX model', 'Export the model to ONNX.'],
  ['GGUF', 'a GGUF file, not an ONNX model', 'Export the model to ONNX.'],
  ['\u007fELF', 'a program or library, not an ONNX model', 'Give the .onnx file itself.'],
  ['ORTM', 'an ONNX Runtime .ort model, not ONNX', 'Give the .onnx file it was made from.'],
];

/** Throws TF_ONNX_NOT_A_MODEL with what the file is, when its first bytes say that it is something people mistake for a model. */
export function refuseOtherFormats(source: ByteSource): void {
  const refuse = (what: string, remedy?: string) =>
    new TrtforgeError(
      'TF_ONNX_NOT_A_MODEL',
      `${source.path} is ${what}.`,
      remedy === undefined ? {} : { remedy },
    );
  if (source.size === 0) throw refuse('empty', 'Export or download the model again.');
  const buffer = new Uint8Array(Math.min(HEAD_BYTES, source.size));
  const head = buffer.subarray(0, source.read(buffer, 0, buffer.length));
  const text = Buffer.from(head.buffer, head.byteOffset, head.length).toString('latin1');

  if (text.startsWith('version https://git-lfs.github.com/spec/')) {
    const size = /\nsize (\d+)/.exec(text)?.[1];
    throw refuse(
      `a Git-LFS pointer, not the model${size === undefined ? '' : ` (the model has ${size} bytes)`}`,
      'Run git lfs pull in its repository, or download the file itself.',
    );
  }
  for (const [magic, what, remedy] of magics) {
    if (text.startsWith(magic)) throw refuse(what, remedy);
  }
  if (text.slice(4, 5) === '{' && /^.{4}\{\s*"/s.test(text) && head.length > 8 && head[3] === 0) {
    throw refuse(
      'a plan with a JSON header in front, not an ONNX model',
      'Use trtforge engine inspect on the plan.',
    );
  }
  if (isText(head)) {
    const html = /^\s*<(!doctype|html)/i.test(text);
    throw refuse(
      html ? 'a web page, not an ONNX model' : 'a text file, not an ONNX model',
      html ? 'The download went wrong; download the file again.' : 'Give the binary .onnx file.',
    );
  }
}
