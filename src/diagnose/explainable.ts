import { openFile } from '../system/byte-source.js';
import { pythonJson } from '../system/python-json.js';
import { type ExplainResult, explainLines } from './explain.js';
import type { ModelNodes } from './model-nodes.js';

/** Results of trtforge are far smaller; a larger file is taken for a log. */
const LARGEST_RESULT = 64 << 20;

/** How deep strings are looked for in a result. */
const DEEPEST = 12;

/**
 * What is no log file but can be explained as one: `-` is standard input, read to its end, and a JSON document (a result or error of trtforge, a report)
 * is the lines of its texts. Undefined for anything else. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE.
 */
export async function readExplainable(
  path: string,
  model?: ModelNodes,
  standardInput: AsyncIterable<Buffer | string> = process.stdin,
): Promise<ExplainResult | undefined> {
  if (path === '-') return explainText('standard input', await wholeOf(standardInput), model);
  if (!path.endsWith('.json')) return undefined;
  const source = openFile(path);
  try {
    if (source.size > LARGEST_RESULT) return undefined;
    const bytes = Buffer.alloc(source.size);
    return explainText(path, bytes.toString('utf8', 0, source.read(bytes, 0, source.size)), model);
  } finally {
    source.close();
  }
}

async function wholeOf(stream: AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function explainText(name: string, text: string, model?: ModelNodes): ExplainResult {
  return explainLines(name, linesIn(text), model);
}

function* linesIn(text: string): Generator<string> {
  const document = /^\s*\{/.test(text) ? parsed(text) : undefined;
  if (document === undefined) yield* text.split('\n');
  else for (const found of textsOf(document, 0)) yield* found.split('\n');
}

function parsed(text: string): unknown {
  try {
    return pythonJson(text);
  } catch {
    return undefined;
  }
}

/** Every text in a document. What trtforge explained before is left out: its words are not the library's. */
function* textsOf(value: unknown, depth: number): Generator<string> {
  if (typeof value === 'string') yield value;
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return;
  for (const [key, inner] of Object.entries(value))
    if (key !== 'issues' && key !== 'remedy') yield* textsOf(inner, depth + 1);
}
