import { createHash } from 'node:crypto';
import { type ByteSource, closing, openFile } from '../../base/files/byte-source.js';
import type { PlanContents } from '../identity/passport.js';
import type { PlanHeader } from './header.js';
import { nodesOfMetadata } from './layer-names.js';
import { groupOf, parseProgramText, type TextGroup, type TextValue, wordOf } from './program-text.js';

/** The program that TensorRT-RTX compiled a network to, as the plan contains it: no GPU and no library is needed to read it. */
export interface PlanProgram {
  /** One for each part of the network and each optimization profile. */
  readonly graphs: readonly ProgramGraph[];
  /**
   * SHA-256 of the program without names of tensors and ONNX nodes: kernels with their attributes, the types, shapes and order of what they read and write, and
   * what computes shapes on the host, in any order. Equal for plans that compute by the same kernels. The values of weights are not in it.
   */
  readonly digest: string;
  /** Of the text, and of what stands behind it: the code of the kernels. */
  readonly textBytes: number;
  readonly codeBytes: number;
}

export interface ProgramGraph {
  /** `sm_89`. */
  readonly architectures: readonly string[];
  /** In the order of the program; without what computes shapes on the host. */
  readonly kernels: readonly ProgramKernel[];
}

export interface ProgramKernel {
  /**
   * `corrltn` (convolution), `deconvolution`, `fully_connected` (matrix product), `maxpool`, `avgpool`, `function` (a generated kernel, or fused attention),
   * `runtime_fusion` (compiled on the user's machine), `copy`, …
   */
  readonly kind: string;
  readonly name: string;
  /** Names of the ONNX nodes it computes, or computes a part of. */
  readonly nodes: readonly string[];
  readonly inputs: readonly ProgramTensor[];
  readonly outputs: readonly ProgramTensor[];
  /** The parts of a `runtime_fusion`; else empty. */
  readonly parts: readonly ProgramKernel[];
}

export interface ProgramTensor {
  readonly name: string;
  /** As numpy spells it, types that numpy lacks as in `dtypes`; the plan's own spelling for others; null for literals. */
  readonly dtype: string | null;
  /** Null in place of dimensions that the host computes; null for literals. */
  readonly shape: readonly (number | null)[] | null;
}

const MULTIPLYING: Readonly<Record<string, string>> = {
  corrltn: 'convolution',
  deconvolution: 'transposed convolution',
  fully_connected: 'matrix product',
};

/** The parts of a kernel, or itself, that multiply tensors, and in which type: that of the first operand. */
export function multiplications(
  kernel: ProgramKernel,
): readonly { readonly kernel: ProgramKernel; readonly operator: string; readonly type: string }[] {
  const isAttention = kernel.kind === 'function' && kernel.name.startsWith('_gemm_mha');
  return [kernel, ...kernel.parts].flatMap((each) => {
    const operator = isAttention ? 'attention' : MULTIPLYING[each.kind];
    const type = each.inputs[0]?.dtype ?? 'unknown';
    return operator === undefined ? [] : [{ kernel: each, operator, type }];
  });
}

/** A 12-layer encoder has half a MiB. */
const LARGEST_SECTION = 16 << 20;
const LARGEST_PROGRAM = 64 << 20;

/**
 * The compiled program in a plan; null where the plan has none that can be read: plans of TensorRT, text of another grammar, more than 64 MiB of it. Reads the file
 * once, in pieces. Throws TF_FILE_UNREADABLE.
 */
export function readPlanProgram({
  path,
  product,
  planOffset,
  planBytes,
  sections,
}: PlanHeader): PlanProgram | null {
  if (product !== 'tensorrt-rtx') return null;
  const { offset, bytes } = sections?.program ?? { offset: planOffset, bytes: planBytes };
  return closing(openFile(path), (source) => programIn(source, offset, offset + bytes));
}

/** What the bytes of a plan are; null where it does not state where its weights are, and where its program cannot be read. */
export function contentsOf({ sections }: PlanHeader, program: PlanProgram | null): PlanContents | null {
  if (sections === null || program === null) return null;
  return {
    weightsBytes: sections.weights.bytes,
    kernelsBytes: program.codeBytes,
    programBytes: program.textBytes,
  };
}

/** The same over the bytes from `start` to `end` of any source. */
export function programIn(source: ByteSource, start = 0, end = source.size): PlanProgram | null {
  const hash = createHash('sha256');
  const graphs: ProgramGraph[] = [];
  let fusions: ReadonlyMap<number, readonly OpenKernel[]> = new Map();
  let fused = 0;
  let [first, textBytes] = [end, 0];
  for (const found of sectionsIn(source, start, end)) {
    const section = found && parseProgramText(found.text);
    const header = section && groupOf(section, 'header');
    const main = section && groupOf(section, 'main');
    if (found === undefined || section === undefined || header === undefined || main === undefined)
      return null;
    first = Math.min(first, found.at);
    textBytes += found.bytes;
    hash.update(canonicalText(section));
    const read = kernelsOf(main, tensorFacts(section));
    // The parts of runtime fusions follow their graph, in the order of their numbers.
    if (isFusion(header)) {
      for (const kernel of fusions.get(fused) ?? []) kernel.parts = read.kernels;
      fused++;
    } else {
      graphs.push({ architectures: architecturesOf(header), kernels: read.kernels });
      fusions = read.fusions;
      fused = 0;
    }
  }
  const codeBytes = end - first - textBytes;
  return graphs.length === 0 ? null : { graphs, digest: hash.digest('hex'), textBytes, codeBytes };
}

const HEADER = Buffer.from('header {\n');
const MAGIC = Buffer.from('NLYM');
/** Magic, a number, and the length of the text in 8 bytes. */
const FRAME_BYTES = 16;
const PIECE = 4 << 20;

interface FramedText {
  readonly at: number;
  /** With the frame. */
  readonly bytes: number;
  readonly text: string;
}

/** The texts, in the order of the file; undefined, and no more of use, when they are too large together. */
function* sectionsIn(source: ByteSource, start: number, end: number): Generator<FramedText | undefined> {
  const overlap = FRAME_BYTES + HEADER.length - 1;
  const piece = Buffer.alloc(Math.min(PIECE, Math.max(0, end - start)));
  let position = start;
  let total = 0;
  while (end - position > overlap) {
    const bytes = piece.subarray(0, source.read(piece, position, Math.min(piece.length, end - position)));
    if (bytes.length <= overlap) return;
    let next = position + bytes.length - overlap;
    let frame = bytes.indexOf(MAGIC);
    while (frame >= 0 && frame + overlap < bytes.length) {
      const length = textLength(bytes, frame);
      const at = position + frame + FRAME_BYTES;
      if (length === undefined || length > Math.min(LARGEST_SECTION, end - at)) {
        frame = bytes.indexOf(MAGIC, frame + 1);
        continue;
      }
      total += FRAME_BYTES + length;
      if (total > LARGEST_PROGRAM) yield undefined;
      const text = Buffer.alloc(length);
      yield {
        ...{ at: at - FRAME_BYTES, bytes: FRAME_BYTES + length },
        text: text.toString('utf8', 0, source.read(text, at, length)),
      };
      next = Math.max(next, at + length);
      frame = bytes.indexOf(MAGIC, frame + FRAME_BYTES + length);
    }
    position = next;
  }
}

/** The length of the text behind a frame; undefined where none begins there. */
function textLength(bytes: Buffer, frame: number): number | undefined {
  const start = frame + FRAME_BYTES;
  if (!bytes.subarray(start, start + HEADER.length).equals(HEADER)) return undefined;
  const length = Number(bytes.readBigUInt64LE(frame + 8));
  return length < HEADER.length ? undefined : length;
}

type OpenKernel = { -readonly [Key in keyof ProgramKernel]: ProgramKernel[Key] };

/** Kinds that order the streams and start the host's part; they are not kernels. */
const CONTROL: ReadonlySet<string> = new Set(['signal', 'wait', 'shape_call']);

/** The kernels of a graph, and those among them whose parts follow, by number. */
function kernelsOf(main: TextGroup, facts: ReadonlyMap<string, Omit<ProgramTensor, 'name'>>) {
  const kernels: OpenKernel[] = [];
  const fusions = new Map<number, OpenKernel[]>();
  const tensors = (names: readonly string[] = []) =>
    names.map((name) => ({ name, ...(facts.get(name) ?? { dtype: null, shape: null }) }));
  for (const [kind, fields] of main.entries) {
    if (typeof fields === 'string' || CONTROL.has(kind)) continue;
    const shapes = Number(wordOf(fields, 'shape_args_count') ?? 0);
    const args = groupOf(fields, 'input_args')?.values;
    const inputs = args?.slice(0, Math.max(0, args.length - shapes)) ?? groupOf(fields, 'input')?.values;
    const outputs = groupOf(fields, 'output_args') ?? groupOf(fields, 'output');
    const kernel: OpenKernel = {
      kind,
      name: wordOf(fields, 'name') ?? '',
      nodes: nodesOfMetadata(wordOf(fields, 'layers') ?? ''),
      inputs: tensors(inputs),
      outputs: tensors(outputs?.values),
      parts: [],
    };
    kernels.push(kernel);
    if (kind !== 'runtime_fusion') continue;
    const number = Number(wordOf(fields, 'binary'));
    const same = fusions.get(number);
    if (same === undefined) fusions.set(number, [kernel]);
    else same.push(kernel);
  }
  return { kernels, fusions };
}

const DTYPES: Readonly<Record<string, string>> = {
  float: 'float32',
  half: 'float16',
  bf16: 'bfloat16',
  fp8_e4m3: 'float8_e4m3fn',
  fp4_e2m1: 'float4_e2m1fn',
  fp8_e8m0: 'float8_e8m0fnu',
};

function tensorFacts(section: TextGroup): ReadonlyMap<string, Omit<ProgramTensor, 'name'>> {
  const facts = new Map<string, Omit<ProgramTensor, 'name'>>();
  for (const [name, tensor] of declared(section)) {
    const type = wordOf(tensor, 'type');
    if (type === undefined) continue;
    const dims = groupOf(tensor, 'dims')?.values.map((dim) => (/^\d{1,15}$/.test(dim) ? Number(dim) : null));
    facts.set(name, { dtype: Object.hasOwn(DTYPES, type) ? DTYPES[type]! : type, shape: dims ?? null });
  }
  return facts;
}

const declared = (section: TextGroup): [name: string, tensor: TextGroup][] =>
  (groupOf(section, 'descriptors')?.entries ?? []).flatMap(([, tensor]): [string, TextGroup][] => {
    const name = typeof tensor === 'string' ? undefined : wordOf(tensor, 'name');
    return name === undefined || typeof tensor === 'string' ? [] : [[name, tensor]];
  });

/** Fusions are compiled for the machine they run on: `accelerators={*}`. */
const isFusion = (header: TextGroup): boolean => groupOf(header, 'accelerators')?.values[0] === '*';

const architecturesOf = (header: TextGroup): string[] =>
  (groupOf(header, 'accelerators')?.values ?? []).map((name) => name.replace(/^sm(?=\d)/, 'sm_'));

/** Groups that name things, state where they lie in memory, or are text for people. */
const NOT_COMPUTED: ReadonlySet<string> = new Set(['layers', 'msg', 'scratchspace']);
const OF_TENSORS: ReadonlySet<string> = new Set([
  'type',
  'dims',
  'strides',
  'const_payload_size',
  'base',
  'const_offset',
]);

/**
 * A section without names: tensors are numbered in the order of their use and described after the kernels. Statements of the shape program, whose order
 * changes from build to build, are sorted by what they compute.
 */
function canonicalText(section: TextGroup): string {
  const tensors = new Map(declared(section));
  const numbers = new Map<string, number>();
  const order: string[] = [];
  const lines: string[] = [];
  const numbered = (name: string): string => {
    const number = numbers.get(name) ?? order.push(name) - 1;
    numbers.set(name, number);
    return `#${number}`;
  };
  const render = (value: TextValue, called = numbered): string =>
    typeof value !== 'string'
      ? `{${fieldsOf(value, called)} ${value.values.map((each) => render(each, called)).join(' ')}}`
      : tensors.has(value)
        ? called(value)
        : JSON.stringify(value);
  const fieldsOf = ({ entries }: Pick<TextGroup, 'entries'>, called = numbered): string =>
    entries.map(([key, value]) => (NOT_COMPUTED.has(key) ? '' : `${key}=${render(value, called)}`)).join(' ');
  const factsOf = (name: string, called = numbered): string =>
    fieldsOf({ entries: tensors.get(name)!.entries.filter(([key]) => OF_TENSORS.has(key)) }, called);
  const header = groupOf(section, 'header');
  for (const key of ['accelerators', 'inputs', 'outputs', 'shape_inputs'])
    lines.push(`${key}=${render((header && groupOf(header, key)) ?? '')}`);
  // Whether products of FP32 tensors are shortened.
  lines.push(`tf32=${(header && wordOf(header, 'tf32')) ?? ''}`);
  for (const [kind, fields] of groupOf(section, 'main')?.entries ?? [])
    lines.push(`${kind}=${render(withoutOwnName(kind, fields))}`);
  // Shapes of tensors name further tensors, which `order` then grows by.
  for (let number = 0; number < order.length; number++) lines.push(`#${number} ${factsOf(order[number]!)}`);

  const statements = (groupOf(section, 'shape_main')?.entries ?? []).map(([kind, fields]) => {
    const outputs = typeof fields === 'string' ? [] : (groupOf(fields, 'output')?.values ?? []);
    return {
      outputs,
      line: (called: (name: string) => string) => `${kind}=${render(withoutOwnName(kind, fields), called)}`,
    };
  });
  const makers = new Map(statements.flatMap((made) => made.outputs.map((name) => [name, made] as const)));
  const labels = new Map<TextValue, string>();
  /** A tensor of the shape program by the statement that makes it. */
  const computed = (name: string): string => {
    if (numbers.has(name)) return numbered(name);
    const known = labels.get(name);
    if (known !== undefined) return known;
    labels.set(name, 'itself');
    const maker = makers.get(name);
    const called = (each: string) => {
      const at = maker?.outputs.indexOf(each) ?? -1;
      return at < 0 ? computed(each) : `out ${at}${each === name ? ', this' : ''}`;
    };
    const text = `${maker?.line(called) ?? ''} ${factsOf(name, computed)}`;
    const label = createHash('sha256').update(text).digest('hex');
    labels.set(name, label);
    return label;
  };
  const shapes = statements.map(({ line }) => line(computed));
  return `${[...lines, ...shapes.sort()].join('\n')}\n\n`;
}

/** Generated kernels are named by what they compute; others by an ONNX node or a number. */
const withoutOwnName = (kind: string, fields: TextValue): TextValue =>
  typeof fields === 'string' || kind === 'function' || kind === 'runtime_fusion'
    ? fields
    : { ...fields, entries: fields.entries.filter(([key]) => key !== 'name') };
