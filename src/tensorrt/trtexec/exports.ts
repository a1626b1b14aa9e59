import { openFile } from '../../base/files/byte-source.js';
import { behaviour } from '../../behaviour/facts.js';
import { TrtforgeError } from '../../errors.js';
import { rawLines } from './log/lines.js';

/** The fields of `--exportTimes` for each query, in its order; milliseconds on the host's clock since the run began. */
const TIME_FIELDS = [
  'startEnqMs',
  'endEnqMs',
  'startH2dMs',
  'endH2dMs',
  'startComputeMs',
  'endComputeMs',
  'startD2hMs',
  'endD2hMs',
  'h2dMs',
  'computeMs',
  'd2hMs',
  'latencyMs',
] as const;
type TimeField = (typeof TIME_FIELDS)[number];

/** Every measured query of a run, warm-up left out; equally long columns. */
export type ExportedTimes = Readonly<Record<TimeField, Float64Array>>;

export interface ExportedProfile {
  /** Inferences that were profiled. */
  readonly count: number;
  readonly layers: readonly {
    readonly name: string;
    /** All inferences together, milliseconds. */
    readonly timeMs: number;
    readonly averageMs: number;
    /** Null in versions that export none. */
    readonly medianMs: number | null;
    /** Of all layers, in hundredths. */
    readonly percentage: number | null;
  }[];
}

export interface ExportedOutput {
  readonly name: string;
  readonly shape: readonly number[];
  /** As printed, six significant digits; `nan` and `inf` as they are. */
  readonly values: Float64Array;
}

const NUMBER = String.raw`(-?(?:\d[\d.]*(?:[eE][-+]?\d+)?|inf|nan))`;

/** Columns grow by doubling: the file does not state how many queries it has. */
class Column {
  private values = new Float64Array(1024);
  private length = 0;

  push(value: number): void {
    if (this.length === this.values.length) {
      const larger = new Float64Array(this.length * 2);
      larger.set(this.values);
      this.values = larger;
    }
    this.values[this.length++] = value;
  }

  done(): Float64Array {
    return this.values.slice(0, this.length);
  }
}

/** Calls back for each line of a file, which may have gigabytes. */
function eachLine(path: string, take: (line: string) => void): void {
  const source = openFile(path);
  try {
    for (const line of rawLines(source)) take(line);
  } finally {
    source.close();
  }
}

/**
 * Reads what `--exportTimes` wrote, a line a query, in every version's dialect; whole queries only.
 * Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_TRTEXEC_EXPORT_INVALID for a file without its end or that is something else.
 */
export function readExportedTimes(path: string): ExportedTimes {
  const columns = new Map(TIME_FIELDS.map((field) => [field, new Column()]));
  let isClosed = false;
  eachLine(path, (line) => {
    if (line.trim() === ']') isClosed = true;
    else if (line.includes('{')) takeQuery(line, columns, path);
  });
  if (!isClosed) throw invalid(path, 'it ends in the middle');
  return Object.fromEntries(
    TIME_FIELDS.map((field) => [field, columns.get(field)?.done() ?? new Float64Array()]),
  ) as Record<TimeField, Float64Array>;
}

const FIELD = new RegExp(`"(\\w+)"\\s*:\\s*${NUMBER}`, 'g');

function takeQuery(line: string, columns: ReadonlyMap<string, Column>, path: string): void {
  if (!line.includes('}')) throw invalid(path, 'a query is cut short');
  let found = 0;
  const values = new Map<string, number>();
  for (const [, field = '', text = ''] of line.matchAll(FIELD)) {
    if (!columns.has(field) || values.has(field)) continue;
    values.set(field, Number(text));
    found++;
  }
  if (found !== TIME_FIELDS.length || [...values.values()].some((value) => !Number.isFinite(value)))
    throw invalid(
      path,
      `a query has no ${TIME_FIELDS.find((field) => !values.has(field)) ?? 'finite times'}`,
    );
  for (const [field, value] of values) columns.get(field)?.push(value);
}

const COUNT = /^\s*,?\s*\{\s*"count"\s*:\s*(\d+)\s*\}/;
/** Names are printed without escapes, so a quote in a name ends it only where the next field begins. */
const LAYER = new RegExp(
  `^\\s*,?\\s*\\{\\s*"name"\\s*:\\s*"(.*)"\\s*,\\s*"timeMs"\\s*:\\s*${NUMBER}\\s*,\\s*"averageMs"\\s*:\\s*${NUMBER}(?:\\s*,\\s*"medianMs"\\s*:\\s*${NUMBER})?(?:\\s*,\\s*"percentage"\\s*:\\s*${NUMBER})?\\s*\\}`,
);

/** Reads what `--exportProfile` wrote. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_TRTEXEC_EXPORT_INVALID. */
export function readExportedProfile(path: string): ExportedProfile {
  let count: number | undefined;
  let isClosed = false;
  const layers: ExportedProfile['layers'][number][] = [];
  eachLine(path, (line) => {
    if (line.trim() === ']') isClosed = true;
    else if (COUNT.test(line)) count = Number(COUNT.exec(line)?.[1]);
    else if (line.includes('{')) layers.push(layerOf(line, path));
  });
  if (!isClosed) throw invalid(path, 'it ends in the middle');
  if (count === undefined || !Number.isSafeInteger(count)) throw invalid(path, 'it states no count');
  return { count, layers };
}

function layerOf(line: string, path: string): ExportedProfile['layers'][number] {
  const [, name, time, average, median, percentage] = LAYER.exec(line) ?? [];
  const [timeMs, averageMs] = [Number(time), Number(average)];
  if (name === undefined || !Number.isFinite(timeMs) || !Number.isFinite(averageMs))
    throw invalid(path, 'a layer has no name or times');
  const optional = (text: string | undefined) =>
    text === undefined || !Number.isFinite(Number(text)) ? null : Number(text);
  return { name, timeMs, averageMs, medianMs: optional(median), percentage: optional(percentage) };
}

/** Reads what `--exportOutput` wrote: text, so not exact, and for uint8 the bytes as they are before `uint8-numbers`. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_TRTEXEC_EXPORT_INVALID. */
export function readExportedOutput(path: string): readonly ExportedOutput[] {
  const source = openFile(path);
  let text: string;
  try {
    if (source.size > LARGEST_OUTPUT) throw invalid(path, `it has ${source.size} bytes`);
    const bytes = Buffer.alloc(source.size);
    text = bytes.toString('utf8', 0, source.read(bytes, 0, source.size));
  } finally {
    source.close();
  }
  if (!/^\s*\[/.test(text) || !/\]\s*$/.test(text))
    throw invalid(path, 'it is not a list, or ends in the middle');
  return [...text.matchAll(TENSOR)].map(([, name = '', dimensions = '', values = '']) =>
    tensorOf(name, dimensions, values, path),
  );
}

const LARGEST_OUTPUT = 256 << 20;

const TENSOR =
  /"name"\s*:\s*"([^\n]{0,1000})"\s*,\s*"dimensions"\s*:\s*"([^"\n]{0,1000})"\s*,\s*"values"\s*:\s*\[([^\]]*)\]/g;

function tensorOf(name: string, dimensions: string, list: string, path: string): ExportedOutput {
  const shape = dimensions.trim() === '' ? [] : dimensions.split('x').map(Number);
  const texts = list.split(',').map((each) => each.trim());
  const values = Float64Array.from(list.trim() === '' ? [] : texts, printedValue);
  const count = shape.reduce((product, dimension) => product * dimension, 1);
  if (!shape.every(Number.isSafeInteger) || count !== values.length)
    throw invalid(path, `tensor "${name}" has ${values.length} values for the shape ${dimensions}`);
  if (texts.some((each, index) => Number.isNaN(values[index]) && !/^-?nan(?:\(.*\))?$/i.test(each)))
    throw invalid(
      path,
      `tensor "${name}" has a value that is not a number; before ${behaviour['uint8-numbers'].trtexec.since} trtexec writes uint8 as characters`,
    );
  return { name, shape, values };
}

const printedValue = (text: string): number =>
  /^-?inf$/i.test(text)
    ? text.startsWith('-')
      ? -Infinity
      : Infinity
    : text === ''
      ? Number.NaN
      : Number(text);

const invalid = (path: string, why: string) =>
  new TrtforgeError('TF_TRTEXEC_EXPORT_INVALID', `${path} is not an export of trtexec: ${why}.`);
