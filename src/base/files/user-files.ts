import { AsyncLocalStorage } from 'node:async_hooks';
import type { Stats } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import { closing, openFile } from './byte-source.js';
import { statIfThere } from './files.js';

/** The inputs of one command or library call, and the outputs that its user named; publishing checks them before it replaces a file. */
interface ProtectedScope {
  /** Path by device and inode, so that links and other spellings of a path are the same file. */
  readonly inputs: Map<string, string>;
  /** The same of what the call itself has written: reading that again makes it no input. */
  readonly written: Set<string>;
  /** Files and folders that the user named; only there the kind of what is replaced matters. */
  readonly outputs: readonly string[];
  readonly force: boolean;
}

const scopes = new AsyncLocalStorage<ProtectedScope>();

/** Does work during which nothing is published over the inputs. Inside another such call it only adds its inputs to those of that call. */
export function protectingInputs<T>(
  inputs: Iterable<string | undefined>,
  work: () => T,
  { outputs = [], force = false }: Partial<Pick<ProtectedScope, 'outputs' | 'force'>> = {},
): T {
  const outer = scopes.getStore();
  const scope = outer ?? {
    inputs: new Map(),
    written: new Set(),
    outputs: outputs.map((path) => resolve(path)),
    force,
  };
  return scopes.run(scope, () => {
    for (const path of inputs) if (path !== undefined) noteInput(path);
    return work();
  });
}

/** Does work as a call of its own, and calls back with what it has read by its end: nothing of the call around it is protected meanwhile. */
export async function recordingInputs<T>(
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly inputs: readonly string[] }> {
  const scope: ProtectedScope = { inputs: new Map(), written: new Set(), outputs: [], force: false };
  const result = await scopes.run(scope, work);
  return { result, inputs: [...scope.inputs.values()] };
}

/** Adds a file or folder to the inputs of the call at work, unless that wrote it. */
export function noteInput(path: string): void {
  const scope = scopes.getStore();
  const key = scope && keyOf(path);
  if (key !== undefined && scope?.written.has(key) === false) scope.inputs.set(key, path);
}

/** A file that the call at work has put in its place. */
export function noteWritten(path: string): void {
  const scope = scopes.getStore();
  const key = scope && keyOf(path);
  if (key !== undefined) scope?.written.add(key);
}

/** Throws TF_OUTPUT_IS_INPUT when `path` is, by whatever name, an input of the call at work. */
export function assertNotInput(path: string): void {
  const key = keyOf(path);
  const input = key === undefined ? undefined : scopes.getStore()?.inputs.get(key);
  // A number of an input that was removed meanwhile may be another file's now.
  if (input === undefined || keyOf(input) !== key) return;
  const also = resolve(input) === resolve(path) ? '' : ` (as ${input})`;
  throw new TrtforgeError('TF_OUTPUT_IS_INPUT', `${path} is read by this command${also}.`);
}

/** Throws TF_USAGE where a folder is passed as the file to write. */
export function assertNoFolder(output: string, what: string, example: string): void {
  if (output.endsWith(sep) || statIfThere(output)?.isDirectory() === true)
    throw new TrtforgeError('TF_USAGE', `-o names ${what}, and ${output} is a folder.`, {
      remedy: `For example: -o ${join(output, example)}`,
    });
}

/** Throws TF_OUTPUT_OF_OTHER_KIND when a file that is not empty holds something else than what is to replace it, unless --force was passed. */
export function assertSameKind(path: string, kinds: readonly (FileKind | undefined)[]): void {
  const there = isForced() ? undefined : kindOf(path);
  if (there !== undefined && !kinds.includes(there))
    throw new TrtforgeError(
      'TF_OUTPUT_OF_OTHER_KIND',
      `${path} is ${there}; ${kinds[0] ?? 'an empty file'} would replace it.`,
    );
}

/** Both, for a written file that is about to take its place. */
export function assertMayReplace(path: string, written: string): void {
  assertNotInput(path);
  const place = resolve(path);
  // The companions of a file (`m.onnx.data`, `m.engine.passport.json`) belong to it.
  const isNamed = (output: string) =>
    place === output || place.startsWith(`${output}.`) || place.startsWith(`${output}${sep}`);
  if (scopes.getStore()?.outputs.some(isNamed) === true) assertSameKind(path, [kindOf(written)]);
}

/** Whether --force was passed. */
export const isForced = (): boolean => scopes.getStore()?.force === true;

/** Rejects to replace a file that people edit by other content, unless --force was passed: that it has the same kind reports nothing. */
export function assertUnedited(path: string, content: string): void {
  const size = statOf(path)?.size ?? 0;
  if (size === 0 || isForced()) return;
  if (size === Buffer.byteLength(content) && headOf(path, size).equals(Buffer.from(content))) return;
  throw new TrtforgeError('TF_OUTPUT_OF_OTHER_KIND', `${path} has other content, perhaps edited by hand.`);
}

/** The kind of a file by its first bytes, as sentences name it. */
export type FileKind =
  | 'a TensorRT plan'
  | 'an ONNX model'
  | 'an npy file'
  | 'a ZIP archive'
  | 'an HTML page'
  | 'an XML file'
  | 'a Git-LFS pointer'
  | 'a text file'
  | 'binary data'
  | `JSON (${string})`;

const HEAD_BYTES = 512;

/** The first bytes of each kind of file; their text is taken as Latin-1, one character per byte. */
const heads: readonly (readonly [begins: (head: string) => boolean, kind: FileKind])[] = [
  [(head) => ['ftrt', 'ptrt', 'vtrt'].includes(head.slice(0, 4)), 'a TensorRT plan'],
  // The length of a JSON header that an exporter put in front.
  [(head) => head.slice(3, 5) === '\0{', 'a TensorRT plan'],
  [(head) => head.startsWith('\u0093NUMPY'), 'an npy file'],
  [(head) => head.startsWith('PK\u0003\u0004'), 'a ZIP archive'],
  // The version of the format, then the tag of another field of ModelProto.
  [
    ([tag = '', version = '', next = '-']) =>
      tag === '\b' && version < ' ' && '\u0012\u001a"(2:Br'.includes(next),
    'an ONNX model',
  ],
  [(head) => /^\s*<(!doctype\s+)?html/i.test(head), 'an HTML page'],
  [(head) => /^\s*<(\?xml|testsuite)/.test(head), 'an XML file'],
  [(head) => head.startsWith('version https://git-lfs.github.com/'), 'a Git-LFS pointer'],
];

/** Undefined when nothing is lost with it: there is not a file, or an empty one. JSON goes by its schema without the version, else by its first key. */
export function kindOf(path: string): FileKind | undefined {
  const stats = statOf(path);
  if (stats?.isFile() !== true || stats.size === 0) return undefined;
  const head = headOf(path, HEAD_BYTES);
  const latin1 = head.toString('latin1');
  const known = heads.find(([begins]) => begins(latin1))?.[1];
  if (known !== undefined || !isText(head) || !isUtf8(head)) return known ?? 'binary data';
  const json = /^\s*[[{]\s*(?:"([^"]*)"\s*:\s*(?:"([^"/]*))?)?/.exec(latin1);
  return json === null ? 'a text file' : `JSON (${(json[1] === 'schema' ? json[2] : json[1]) ?? ''})`;
}

/** True when no byte is a control character other than white space; in protobuf the tags of the first fields always are. */
export const isText = (head: Uint8Array): boolean =>
  head.every((byte) => byte >= 32 || byte === 9 || byte === 10 || byte === 13);

/** Weights can happen to be free of control characters. The last character may be cut. */
function isUtf8(head: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    return true;
  } catch {
    return false;
  }
}

function headOf(path: string, length: number): Buffer {
  return closing(openFile(path), (source) => {
    const head = Buffer.alloc(length);
    return head.subarray(0, source.read(head, 0, length));
  });
}

function keyOf(path: string): string | undefined {
  const stats = statOf(path);
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

/** Undefined also for a path that no file can have (too long, with a null character); reading or writing it fails with its own error. */
function statOf(path: string): Stats | undefined {
  try {
    return statIfThere(path);
  } catch {
    return undefined;
  }
}
