import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type ByteSource, closing, openFile } from '../../base/files/byte-source.js';
import { namesIn, statIfThere } from '../../base/files/files.js';
import { isBelow } from '../../base/files/folders.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { WireReader, WireType } from '../../formats/onnx/wire.js';
import { readModelContent } from '../identity/model-content.js';
import type { Passport } from '../identity/passport.js';

/** An engine that an ONNX file wraps for ONNX Runtime: the plan is inside, or in a file that its node names. https://onnxruntime.ai/docs/execution-providers/EP-Context-Design.html */
type WrappedPlan =
  | { readonly kind: 'embedded'; readonly node: string; readonly offset: number; readonly bytes: number }
  | { readonly kind: 'file'; readonly node: string; readonly path: string };

/** Names and paths in a node; what is longer is not one. */
const LONGEST_TEXT = 64 << 10;

/**
 * The engine of an ONNX file with a node `EPContext`, of which only the records around it are read; null for any other file. Throws TF_PLAN_INVALID for a file that wraps
 * several, or names one outside of its folder.
 */
export function wrappedPlanIn(source: ByteSource): WrappedPlan | null {
  const found = contextNodesIn(source);
  const [node] = found;
  if (node === undefined) return null;
  const { path } = source;
  if (found.length > 1)
    throw new TrtforgeError(
      'TF_PLAN_INVALID',
      `${path} wraps ${found.length} engines: ${found.map(({ name }) => name).join(', ')}.`,
      {
        remedy:
          'Dump the context with trt_ep_context_embed_mode=0 and pass one of the plans beside the model.',
      },
    );
  const { name, content } = node;
  if (content === null)
    throw new TrtforgeError('TF_PLAN_INVALID', `The node ${name} of ${path} has no ep_cache_context.`);
  if (node.embedded)
    return { kind: 'embedded', node: name, offset: content.start, bytes: content.end - content.start };
  const named = textIn(source, content) ?? '';
  const plan = resolve(dirname(path), named);
  // A model that is a link itself may have its plan beside the link, or beside what it really is.
  if (named === '' || ![path, realpathSync(path)].some((model) => isBelow(dirname(model), plan)))
    throw new TrtforgeError(
      'TF_PLAN_INVALID',
      `The node ${name} of ${path} names a plan outside of its folder.`,
    );
  return { kind: 'file', node: name, path: join(dirname(path), named) };
}

interface Range {
  readonly start: number;
  readonly end: number;
}

interface ContextNode {
  readonly name: string;
  readonly embedded: boolean;
  readonly content: Range | null;
}

/** ModelProto.graph, GraphProto.node and the fields of NodeProto and AttributeProto: onnx.proto. */
const GRAPH = 7;
const NODE = 1;
const node = { name: 3, opType: 4, attribute: 5 } as const;
const attribute = { name: 1, i: 3, s: 4 } as const;

function contextNodesIn(source: ByteSource): readonly ContextNode[] {
  const nodes: ContextNode[] = [];
  try {
    const whole = { start: 0, end: source.size };
    for (const graph of recordsIn(source, whole, GRAPH))
      for (const record of recordsIn(source, graph, NODE)) {
        const context = contextNode(source, record);
        if (context !== null) nodes.push(context);
      }
  } catch (error) {
    // No protobuf, or none that is whole: no model.
    if (error instanceof TrtforgeError) return [];
    throw error;
  }
  return nodes;
}

function contextNode(source: ByteSource, record: Range): ContextNode | null {
  const texts = (field: number) => [...recordsIn(source, record, field)].map((each) => textIn(source, each));
  if (texts(node.opType)[0] !== 'EPContext') return null;
  let embedded = true;
  let content: Range | null = null;
  for (const each of recordsIn(source, record, node.attribute)) {
    const [name] = [...recordsIn(source, each, attribute.name)].map((range) => textIn(source, range));
    if (name === 'embed_mode') embedded = numberIn(source, each) !== 0;
    // Nodes of one engine that several share: the main one has it.
    if (name === 'main_context' && numberIn(source, each) === 0) return null;
    if (name === 'ep_cache_context') content = [...recordsIn(source, each, attribute.s)][0] ?? null;
  }
  return { name: texts(node.name)[0] || 'EPContext', embedded, content };
}

/** The content of every record of a field that holds bytes, within a message. */
function* recordsIn(source: ByteSource, { start, end }: Range, wanted: number): Generator<Range> {
  const reader = new WireReader(source);
  reader.position = start;
  while (reader.position < end) {
    const record = reader.position;
    const tag = reader.varint(end);
    const content = reader.skip(tag % 8, record, end);
    if (Math.floor(tag / 8) === wanted && tag % 8 === WireType.bytes)
      yield { start: content, end: reader.position };
  }
}

/** `i` of an AttributeProto; 0 where it has none, as protobuf has it. */
function numberIn(source: ByteSource, { start, end }: Range): number {
  const reader = new WireReader(source);
  reader.position = start;
  while (reader.position < end) {
    const record = reader.position;
    const tag = reader.varint(end);
    if (tag === attribute.i * 8) return reader.varint(end);
    reader.skip(tag % 8, record, end);
  }
  return 0;
}

function textIn(source: ByteSource, { start, end }: Range): string | undefined {
  if (end - start > LONGEST_TEXT) return undefined;
  const bytes = new Uint8Array(end - start);
  source.read(bytes, start, bytes.length);
  return Buffer.from(bytes).toString('utf8');
}

/**
 * That an engine was built from another model than the ONNX file that belongs to it, in one sentence; null where it was built from it, and where no file or no digest
 * decides. The file is the one that is `named`, else the one beside the engine that has the name of its model or its own. Throws TF_CANCELLED.
 */
export async function changedModel(
  engine: string,
  { model, identity }: Pick<Passport, 'model' | 'identity'>,
  context: WorkContext = {},
  named?: string,
): Promise<string | null> {
  const file = named ?? besides(engine, model.name).find((path) => statIfThere(path)?.isFile() === true);
  if (file === undefined) return null;
  try {
    if (closing(openFile(file), wrappedPlanIn) !== null) return null;
    const { digest } = await readModelContent(file, context);
    const built = identity.document.model;
    if (digest === built) return null;
    return `${basename(engine)} was built from the model ${built.slice(0, 12)} (${model.name}), and ${file} is ${digest.slice(0, 12)}.`;
  } catch (error) {
    // An unreadable file proves nothing; the caller that needs the model reports it.
    if (error instanceof TrtforgeError && error.code !== 'TF_CANCELLED') return null;
    throw error;
  }
}

/** `det.onnx` beside `det.engine`, `det_ctx.onnx`, and `det.onnx_b4_gpu0_fp16.engine` as DeepStream names it. */
const besides = (engine: string, model: string): readonly string[] =>
  [basename(model), basename(engine).replace(/(\.onnx_b\d.*|_ctx)?\.[^.]+$/, '')].map((name) =>
    join(dirname(engine), `${name}.onnx`),
  );

/** The ONNX files of a plan's folder that wrap it for ONNX Runtime. */
export function wrappersOf(plan: string): readonly string[] {
  const folder = dirname(plan);
  return namesIn(folder).filter((name) => {
    if (!name.endsWith('.onnx')) return false;
    try {
      const wrapped = closing(openFile(join(folder, name)), wrappedPlanIn);
      return wrapped?.kind === 'file' && wrapped.path === plan;
    } catch (error) {
      if (error instanceof TrtforgeError) return false;
      throw error;
    }
  });
}
