import { closing, openFile } from '../../base/files/byte-source.js';
import { parseJson, pythonJson } from '../../base/files/json.js';
import { LineCutter } from '../../tensorrt/trtexec/log/lines.js';
import { type ExplainResult, explainLines, explanation, FIRST_BYTES, rejectBinary } from './explain.js';
import { type ExplainMeans, LogReading } from './log-reading.js';

/** Results of trtforge are far smaller; a larger document is taken for a log. */
const LARGEST_RESULT = 64 << 20;

/** The depth to which strings are looked for in a result. */
const DEEPEST = 12;

/**
 * Reads input that is not a log file but can be explained as one: `-` is standard input, read to its end, and a JSON document (a result or error of
 * trtforge, a report) is the lines of its texts. Undefined for anything else. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE,
 * TF_USAGE for what is not text.
 */
export async function readExplainable(
  path: string,
  means?: ExplainMeans,
  standardInput: AsyncIterable<Buffer | string> = process.stdin,
): Promise<ExplainResult | undefined> {
  if (path === '-') return explainStream(standardInput, means);
  if (!path.endsWith('.json')) return undefined;
  return closing(openFile(path), (source) => {
    if (source.size > LARGEST_RESULT) return undefined;
    const bytes = Buffer.alloc(source.size);
    const text = bytes.toString('utf8', 0, source.read(bytes, 0, source.size));
    return explainLines(path, linesIn(text), means);
  });
}

const STANDARD_INPUT = 'standard input';

/** A verbose build prints hundreds of megabytes, so lines are read as they come; only what may be a JSON document is kept until its end. */
async function explainStream(
  stream: AsyncIterable<Buffer | string>,
  means?: ExplainMeans,
): Promise<ExplainResult> {
  const reading = new LogReading(means);
  const lines = new LineCutter((cut) => {
    for (const line of cut) reading.take(line);
  });
  let document: Buffer[] | null = null;
  let bytes = 0;
  let isBegun = false;
  for await (const chunk of stream) {
    const piece = Buffer.from(chunk);
    if (!isBegun) {
      rejectBinary(STANDARD_INPUT, piece.subarray(0, FIRST_BYTES));
      if (/^\s*\{/.test(piece.toString('latin1', 0, FIRST_BYTES))) document = [];
    }
    isBegun = true;
    bytes += piece.length;
    if (document === null) lines.write(piece);
    else document.push(piece);
    if (document !== null && bytes > LARGEST_RESULT) {
      for (const kept of document) lines.write(kept);
      document = null;
    }
  }
  if (document !== null)
    return explainLines(STANDARD_INPUT, linesIn(Buffer.concat(document).toString('utf8')), means);
  lines.end();
  return explanation(STANDARD_INPUT, reading);
}

function* linesIn(text: string): Generator<string> {
  const document = /^\s*\{/.test(text) ? parsed(text) : undefined;
  if (document === undefined) yield* text.split('\n');
  else for (const found of textsOf(document, 0)) yield* found.split('\n');
}

function parsed(text: string): unknown {
  try {
    return parseJson(text, LARGEST_RESULT, Error, pythonJson);
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
