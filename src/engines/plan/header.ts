import { type ByteSource, closing, openFile } from '../../base/files/byte-source.js';
import { sha256OfRange } from '../../base/files/digest.js';
import { statIfThere } from '../../base/files/files.js';
import { isRecord, type JsonRecord, parseJson } from '../../base/files/json.js';
import { publishPart } from '../../base/files/publish.js';
import { kindOf, protectingInputs } from '../../base/files/user-files.js';
import { behaviour } from '../../behaviour/facts.js';
import { TrtforgeError } from '../../errors.js';
import { wrappedPlanIn } from './context-model.js';

/** The first 28 bytes of a plan: tag, serialization version, size, version of the library. */
const HEADER_BYTES = 28;

/** Headers of exporters are a few KiB of JSON. */
const LARGEST_FOREIGN_HEADER = 16 << 20;

export interface PlanHeader {
  readonly path: string;
  readonly product: 'tensorrt' | 'tensorrt-rtx';
  /**
   * `major.minor.patch.build` of the library that built the plan. Each number is one byte, so a build number from 256 on appears modulo 256.
   * null for plans before `plan-version`, which do not state it here.
   */
  readonly version: string | null;
  /** The size that the plan's own header gives; null where it is not known to give one. */
  readonly announcedBytes: number | null;
  /** Bytes of the whole file, and of the plan in it. */
  readonly fileBytes: number;
  readonly planOffset: number;
  readonly planBytes: number;
  /** Where the program with its kernels and where the weights stand, counted from the start of the file; null where the plan does not state it: plans of TensorRT. */
  readonly sections: { readonly program: Section; readonly weights: Section } | null;
  /** The header that an exporter put in front of the plan; other programs reject such a file with a "magic tag" error. */
  readonly foreignHeader: ForeignHeader | null;
}

interface Section {
  readonly offset: number;
  readonly bytes: number;
}

/** Four bytes of length, little-endian, and JSON: what Ultralytics writes before the plan; or the ONNX file that wraps it for ONNX Runtime, up to the plan. */
interface ForeignHeader {
  readonly kind: 'ultralytics' | 'json' | 'onnxruntime';
  /** With the length. */
  readonly bytes: number;
  readonly content: Readonly<Record<string, unknown>>;
}

/**
 * Reads what a plan file reports of itself, on any machine. The digest is not computed here (`planDigest`). Of an ONNX file that wraps a plan for ONNX Runtime (a node
 * EPContext) it is the plan in it, or that of the file beside it, which `path` then names.
 * Throws TF_PLAN_INVALID for anything else, also for plans that are cut short, TF_FILE_NOT_FOUND.
 */
export function readPlanHeader(path: string): PlanHeader {
  return closing(openFile(path), (source) => {
    const wrapped = locatePlan(source) === undefined ? wrappedPlanIn(source) : null;
    if (wrapped === null) return planHeaderOf(source);
    if (wrapped.kind === 'embedded') return embeddedHeader(source, wrapped);
    if (statIfThere(wrapped.path) === undefined)
      throw new TrtforgeError(
        'TF_FILE_NOT_FOUND',
        `${path} is wrapped around the plan ${wrapped.path}, which does not exist.`,
        { remedy: 'Copy the plan there, or let ONNX Runtime write both again.' },
      );
    return closing(openFile(wrapped.path), planHeaderOf);
  });
}

/** The header of a plan inside of another file. */
function embeddedHeader(
  source: ByteSource,
  { node, offset, bytes }: { readonly node: string; readonly offset: number; readonly bytes: number },
): PlanHeader {
  const part: ByteSource = {
    path: source.path,
    size: bytes,
    read: (target, position, length) =>
      source.read(target, offset + position, Math.max(0, Math.min(length, bytes - position))),
    close: () => {},
  };
  const header = planHeaderOf(part);
  return {
    ...header,
    fileBytes: source.size,
    planOffset: offset + header.planOffset,
    sections: header.sections && {
      program: moved(header.sections.program, offset),
      weights: moved(header.sections.weights, offset),
    },
    foreignHeader: { kind: 'onnxruntime', bytes: offset + header.planOffset, content: { node } },
  };
}

const moved = (section: Section, by: number): Section => ({ ...section, offset: section.offset + by });

const foreignNames = {
  ultralytics: 'Ultralytics metadata',
  json: 'JSON',
  onnxruntime: 'an ONNX file',
} as const;

/** The name of the header before a plan, for messages. */
export const foreignName = ({ kind }: ForeignHeader): string => foreignNames[kind];

/** The same over any source of bytes. */
export function planHeaderOf(source: ByteSource): PlanHeader {
  const start = locatePlan(source);
  if (start === undefined) throw notAPlan(source);
  const { planOffset, foreignHeader } = start;
  const planBytes = source.size - planOffset;
  const head = readBytes(source, planOffset, HEADER_BYTES);
  const tag = tagOf(head)!;
  if (head.length < HEADER_BYTES)
    throw invalid(source.path, `is cut short: a plan's header alone has ${HEADER_BYTES} bytes`);
  const product = tag === 'vtrt' ? 'tensorrt-rtx' : 'tensorrt';
  const view = new DataView(head.buffer, head.byteOffset, head.length);
  const serialization = view.getUint32(4, true);
  if (tag !== 'ptrt' && serialization !== 0) {
    throw invalid(source.path, `has serialization version ${serialization}, which no known TensorRT writes`);
  }
  const announcedBytes = tag === 'vtrt' ? Number(view.getBigUint64(16, true)) : null;
  if (announcedBytes !== null && announcedBytes > planBytes) {
    throw invalid(
      source.path,
      `is cut short: its header announces ${announcedBytes} bytes and ${planBytes} are there`,
    );
  }
  return {
    path: source.path,
    product,
    version: tag === 'ptrt' ? null : [...head.subarray(24, 28)].join('.'),
    announcedBytes,
    fileBytes: source.size,
    planOffset,
    planBytes,
    sections: tag === 'vtrt' ? sectionsOf(source, planOffset, planBytes, view.getUint32(8, true)) : null,
    foreignHeader,
  };
}

/** Behind the header and as much again. */
const TABLE_OFFSET = 64;
const TABLE_ROW_BYTES = 24;

/** By the table of sections as tensorrt-rtx 1.7.1 writes it: of each a tag of 8 bytes, the offset in the plan, and the length; null for another layout. */
function sectionsOf(
  source: ByteSource,
  planOffset: number,
  planBytes: number,
  count: number,
): PlanHeader['sections'] {
  if (count > 16) return null;
  const table = readBytes(source, planOffset + TABLE_OFFSET, count * TABLE_ROW_BYTES);
  const view = new DataView(table.buffer, table.byteOffset, table.length);
  const find = (tag: string): Section | undefined => {
    const at = Buffer.from(table).indexOf(tag, 0, 'latin1');
    if (at < 0 || at % TABLE_ROW_BYTES !== 0 || at + TABLE_ROW_BYTES > table.length) return undefined;
    const [offset, bytes] = [view.getBigUint64(at + 8, true), view.getBigUint64(at + 16, true)].map(Number);
    return offset! + bytes! <= planBytes ? { offset: planOffset + offset!, bytes: bytes! } : undefined;
  };
  const [program, weights] = [find('NGNE'), find('THGW')];
  return program === undefined || weights === undefined ? null : { program, weights };
}

/** By the tag alone, with or without a foreign header. */
function isPlanFile(path: string): boolean {
  return closing(openFile(path), (source) => locatePlan(source) !== undefined);
}

/** Whether a file is taken for an engine: it has the tag of a plan, or only the name of one (`.engine`, `.plan`, `.trt`), and then reading it reports what is wrong. */
export const isEngineFile = (path: string): boolean => isPlanFile(path) || /\.(engine|plan|trt)$/i.test(path);

/** SHA-256 of the plan in a file, without what stands before it. */
export function planDigest(header: PlanHeader): string {
  return closing(openFile(header.path), (source) =>
    sha256OfRange(source, header.planOffset, header.planBytes),
  );
}

/**
 * Writes the plan of `input` to `output` without its foreign header, atomically. Returns its size.
 * Throws TF_USAGE when there is no foreign header, TF_OUTPUT_IS_INPUT, TF_PLAN_INVALID, TF_WRITE_FAILED.
 */
export function stripForeignHeader(
  input: string,
  output: string,
): { readonly path: string; readonly bytes: number } {
  const header = readPlanHeader(input);
  if (header.foreignHeader === null) {
    throw new TrtforgeError('TF_USAGE', `${input} is a plain plan; there is no header to strip.`, {
      remedy: header.path === input ? 'Use the file as it is.' : `Use ${header.path}, which the model names.`,
    });
  }
  closing(openFile(input), (source) =>
    protectingInputs([input], () => publishPart(output, source, header.planOffset, header.planBytes)),
  );
  return { path: output, bytes: header.planBytes };
}

/** Where the plan begins; undefined when the file is not a plan. */
function locatePlan(
  source: ByteSource,
): { planOffset: number; foreignHeader: ForeignHeader | null } | undefined {
  const head = readBytes(source, 0, 8);
  if (tagOf(head) !== undefined) return { planOffset: 0, foreignHeader: null };
  if (head.length < 8) return undefined;
  const length = new DataView(head.buffer, head.byteOffset, 4).getUint32(0, true);
  if (head[4] !== 0x7b || length < 2 || length > LARGEST_FOREIGN_HEADER || 4 + length + 4 > source.size)
    return undefined;
  if (tagOf(readBytes(source, 4 + length, 4)) === undefined) return undefined;
  const content = parseObject(readBytes(source, 4, length));
  if (content === undefined) return undefined;
  const kind = [content.author, content.description].some((text) => String(text).includes('Ultralytics'))
    ? 'ultralytics'
    : 'json';
  return { planOffset: 4 + length, foreignHeader: { kind, bytes: 4 + length, content } };
}

/** The version that a header states, for a sentence: plans of older ones state none. */
export const versionText = (version: PlanHeader['version']): string =>
  version ?? `before ${behaviour['plan-version'].tensorrt.since}`;

/** `ftrt` TensorRT whose plans state their version, `ptrt` before, `vtrt` TensorRT-RTX. */
function tagOf(head: Uint8Array): 'ftrt' | 'ptrt' | 'vtrt' | undefined {
  const tag = Buffer.from(head.buffer, head.byteOffset, head.length).toString('latin1', 0, 4);
  return tag === 'ftrt' || tag === 'ptrt' || tag === 'vtrt' ? tag : undefined;
}

function readBytes(source: ByteSource, position: number, length: number): Uint8Array {
  const bytes = new Uint8Array(Math.max(0, Math.min(length, source.size - position)));
  return bytes.subarray(0, source.read(bytes, position, bytes.length));
}

function parseObject(bytes: Uint8Array): JsonRecord | undefined {
  try {
    const value = parseJson(Buffer.from(bytes).toString('utf8'), LARGEST_FOREIGN_HEADER, Error);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function notAPlan({ path, size }: ByteSource): TrtforgeError {
  if (size === 0)
    return new TrtforgeError('TF_PLAN_INVALID', `${path} is empty.`, {
      remedy: 'Copy or build the engine again.',
    });
  const kind = kindOf(path);
  return new TrtforgeError('TF_PLAN_INVALID', `${path} is ${kind ?? 'no file'}, not a TensorRT plan.`, {
    remedy:
      kind === 'a Git-LFS pointer'
        ? 'Run git lfs pull in its repository, or download the file itself.'
        : undefined,
  });
}

const invalid = (path: string, what: string) => new TrtforgeError('TF_PLAN_INVALID', `${path} ${what}.`);
