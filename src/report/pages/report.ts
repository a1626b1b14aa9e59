import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { z } from 'zod';
import { sha256 } from '../../base/files/digest.js';
import { readText, statIfThere } from '../../base/files/files.js';
import { parseJson } from '../../base/files/json.js';
import { publishFile } from '../../base/files/publish.js';
import { faultText } from '../../base/text/schema-error.js';
import { TrtforgeError } from '../../errors.js';
import { readAudio } from '../../formats/audio/read-audio.js';
import { readImageFile, thumbnail } from '../../formats/images/image.js';
import type { WorstSample } from '../../quality/verify/result.js';
import { type Blocks, type Page, present, type Section } from '../blocks.js';
import { type Chart, chartFile } from '../chart/frame.js';
import { noPictures, type Pictures, type ShownFile } from '../chart/prediction.js';
import { type Comparable, compareResults, MOST_RUNS } from '../comparison/compare.js';
import type { RenderedReport, ResultAt, RunOf } from '../forge-result.js';
import { renderHtml } from '../html.js';
import { renderMarkdown } from '../markdown.js';
import { comparisonPage } from './comparison.js';

/** One kind of result that is rendered as a report: a run of forge, a bundle. */
export interface ReportKind<R = unknown> {
  /** The command that makes such a result, for messages: `forge`. */
  readonly source: string;
  /** Its name in the folder that the command writes. */
  readonly file: string;
  /** Its `schema` is what a file of this kind names: `trtforge.forge/2`. */
  readonly result: z.ZodType<R> & { readonly shape: { readonly schema: z.ZodLiteral<string> } };
  /** Its folder is a run root, where results of other commands lie too: sections of them are shown before the phases. */
  readonly isRunRoot?: true;
  /** The page that shows it. */
  page(result: R): Page;
  /** Several of them side by side, where a kind can be compared. */
  readonly compare?: Comparable<R>;
  /** The chart that `--format svg` writes; null where this result has none. */
  readonly chart?: (result: R) => Chart | null;
}

/** A product's sections on its results in the run root of another command, or in two that are compared; `result` is that command's. */
export type RunRootSections = (runs: readonly RunOf<unknown>[]) => readonly Section[];

/** Types a kind by its own result, then forgets it so that kinds fit one list. */
export const defineReport = <R>(kind: ReportKind<R>): ReportKind => kind as ReportKind;

/** No report comes near this; reading something bigger as JSON would take the machine's memory. */
const LARGEST_BYTES = 256 << 20;

interface ReadReport {
  readonly kind: ReportKind;
  readonly result: unknown;
}

/**
 * Reads the result of a run from its folder or its file. A folder that holds results of several kinds is of the first kind in the list.
 * Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_REPORT_INVALID.
 */
export function readReport(path: string, kinds: readonly ReportKind[]): ReadReport {
  const isFolder = statIfThere(path)?.isDirectory() === true;
  const names = kinds.map(({ file }) => join(path, file));
  const file = isFolder ? (names.find((name) => existsSync(name)) ?? names[0] ?? path) : path;
  return parseReport(readText(file, LARGEST_BYTES, 'TF_REPORT_INVALID'), path, kinds);
}

/** Checks the text of a result; its `schema` decides the kind, and the first kind judges one that has none. Errors: TF_REPORT_INVALID. */
function parseReport(text: string, path: string, kinds: readonly ReportKind[]): ReadReport {
  const json = parseJson(
    text,
    LARGEST_BYTES,
    (why, cause) => new TrtforgeError('TF_REPORT_INVALID', `${path} cannot be read: ${why}.`, { cause }),
  );
  const schema = typeof json === 'object' && json !== null && 'schema' in json ? json.schema : undefined;
  const kind = kinds.find((candidate) => schemaOf(candidate) === schema) ?? kinds[0];
  const [name, version] = typeof schema === 'string' ? schema.split('/') : [];
  const newer = kinds.find((candidate) => schemaOf(candidate).split('/')[0] === name);
  if (newer !== undefined && schemaOf(newer) !== schema)
    throw new TrtforgeError(
      'TF_REPORT_INVALID',
      `${path} is version ${version} of ${name}; this release reads ${schemaOf(newer)}.`,
      { remedy: 'Run the command that wrote it again: it writes the report anew.' },
    );
  if (kind === undefined || (kind === kinds[0] && name?.startsWith('trtforge.') && newer === undefined))
    throw new TrtforgeError('TF_REPORT_INVALID', `${path} is a ${schema}, which has no report.`, {
      remedy: `Pass a result of one of these: ${kinds.map(({ source }) => source).join(', ')}.`,
    });
  const checked = kind.result.safeParse(json);
  if (checked.success) return { kind, result: checked.data };
  throw new TrtforgeError(
    'TF_REPORT_INVALID',
    `${path} is not a result of ${kind.source}: ${faultText(checked.error)}.`,
    { cause: checked.error },
  );
}

const schemaOf = ({ result }: ReportKind): string => result.shape.schema.value;

/** A report in one of the forms it is written in, with its file name; `more` are sections of other results in its run root, `pictures` what `picturesOf` found. Throws TF_USAGE for `svg` of a result without a chart. */
export function renderReport(
  { kind, result }: ReadReport,
  format: ReportFormat,
  more: readonly Section[] = [],
  pictures: Pictures = noPictures,
): { readonly name: string; readonly content: string } {
  if (format === 'json') return { name: kind.file, content: `${JSON.stringify(result, null, 2)}\n` };
  if (format === 'svg') return { name: 'report.svg', content: chartFile(chartOf(kind, result)) };
  const page = withSections(kind.page(result), more);
  return format === 'html'
    ? { name: 'report.html', content: renderHtml(page, result, pictures) }
    : { name: 'report.md', content: renderMarkdown(page) };
}

/** The pictures of a report, for its page; the other forms have none. */
export const picturesOf = async ({ kind, result }: ReadReport, format: ReportFormat): Promise<Pictures> =>
  format === 'html' ? loadPictures(kind.page(result)) : noPictures;

/** Results of one kind side by side, likewise, and why parts of them cannot be compared. Throws TF_USAGE for kinds that have no such page, for too many, and for `svg`. */
export function renderComparison(
  runs: readonly ComparedReport[],
  format: ReportFormat,
  kinds: readonly ReportKind[],
  more: readonly Section[],
): { readonly name: string; readonly content: string; readonly warnings: readonly string[] } {
  const { kind, path } = runs[0]!;
  const wrong = (message: string, remedy: string) => new TrtforgeError('TF_USAGE', message, { remedy });
  const other = runs.find((run) => run.kind !== kind);
  if (other !== undefined)
    throw wrong(
      `${path} is a result of ${kind.source}, and ${other.path} of ${other.kind.source}: different kinds cannot be shown side by side.`,
      'Pass results of one kind.',
    );
  if (kind.compare === undefined) {
    const comparable = kinds.filter(({ compare }) => compare !== undefined).map(({ source }) => source);
    throw wrong(
      `Results of ${kind.source} cannot be shown side by side.`,
      `Pass results of one of these: ${comparable.join(', ')}.`,
    );
  }
  if (runs.length > MOST_RUNS)
    throw wrong(`${runs.length} results have no room side by side.`, `Pass ${MOST_RUNS} at most.`);
  if (format === 'svg')
    throw wrong(
      'A comparison has no chart of its own.',
      'Write the page, which has every chart: --format html.',
    );
  const result = compareResults(kind.source, kind.compare, runs);
  const page = comparisonPage(result);
  const warnings = page.verdict.reasons;
  if (format === 'json')
    return { name: 'comparison.json', content: `${JSON.stringify(result, null, 2)}\n`, warnings };
  const whole = withSections(page, more);
  return format === 'html'
    ? { name: 'comparison.html', content: renderHtml(whole, result), warnings }
    : { name: 'comparison.md', content: renderMarkdown(whole), warnings };
}

/** Writes a report into a file; for `-` the result has the content, which goes to stdout. Throws TF_WRITE_FAILED. */
export function writeReport(format: ReportFormat, content: string, output: string): RenderedReport {
  if (output === '-') return { schema: 'trtforge.report/1', format, path: null, content };
  publishFile(output, content);
  return { schema: 'trtforge.report/1', format, path: output, content: null };
}

type ReportFormat = RenderedReport['format'];
type ComparedReport = ReadReport & ResultAt<unknown>;

function chartOf(kind: ReportKind, result: unknown): Chart {
  const chart = kind.chart?.(result) ?? null;
  if (chart !== null) return chart;
  throw new TrtforgeError('TF_USAGE', `This result of ${kind.source} has no chart of its own.`, {
    remedy: 'Write the page, which has every chart: --format html.',
  });
}

/** Results come before how they were made. */
function withSections(page: Page, more: readonly Section[]): Page {
  const sections = present(page.sections);
  const phases = sections.findIndex(({ id }) => id === 'phases');
  return { ...page, sections: sections.toSpliced(phases < 0 ? sections.length : phases, 0, ...more) };
}

/** Longer side of a picture on a page, in pixels. */
const SIDE = 480;
/** Of the pictures of a page together, as text. */
const MOST_BYTES = 2_000_000;
/** JPEG's, and the one that a picture gets which takes more than its share. */
const [QUALITY, LOW_QUALITY] = [72, 35];
const SHARE = MOST_BYTES / 12;
/** Of the outline of a recording. */
const COLUMNS = 480;

/**
 * The files of a page's samples, in small: they are read when the page is made, and a result has none of their pixels. Only a file of the recorded digest is
 * shown, so that a page never has another file than the one that was judged; what cannot be shown is named with the reason.
 */
async function loadPictures({ sections }: Page): Promise<Pictures> {
  const pictures = new Map<string, ShownFile>();
  let left = MOST_BYTES;
  for (const sample of present(sections).flatMap(({ blocks }) => samplesIn(blocks))) {
    if (pictures.has(sample.sha256)) continue;
    const shown = await shownFile(sample);
    const bytes = 'uri' in shown ? shown.uri.length : 0;
    const isKept = bytes <= left;
    if (isKept) left -= bytes;
    pictures.set(sample.sha256, isKept ? shown : { why: 'Not shown: the pictures of the page take 2 MB.' });
  }
  return pictures;
}

const samplesIn = (blocks: Blocks): readonly WorstSample[] =>
  present(blocks).flatMap((block) => {
    if (block.kind === 'samples') return block.samples;
    if (block.kind === 'fold') return samplesIn(block.blocks);
    return block.kind === 'part' ? samplesIn(block.section.blocks) : [];
  });

async function shownFile({ file, sha256: recorded, size }: WorstSample): Promise<ShownFile> {
  try {
    const bytes = readImageFile(file);
    if (sha256(bytes) !== recorded) return { why: `${file} is another file than the one that was judged.` };
    if (size === null) return await peaksOf(file);
    const small = (quality: number) => thumbnail(file, bytes, { side: SIDE, quality });
    const first = await small(QUALITY);
    const uri = (jpeg: Buffer) => `data:image/jpeg;base64,${jpeg.toString('base64')}`;
    return { ...size, uri: uri(first.length * (4 / 3) <= SHARE ? first : await small(LOW_QUALITY)) };
  } catch (error) {
    if (error instanceof TrtforgeError) return { why: `Not shown: ${error.message}` };
    throw error;
  }
}

async function peaksOf(path: string): Promise<ShownFile> {
  const { samples, rate } = await readAudio(path);
  const columns = Math.min(COLUMNS, samples.length);
  const peaks = Array.from({ length: columns }, (_, column): readonly [number, number] => {
    let [low, high] = [0, 0];
    const [from, to] = [column, column + 1].map((edge) => Math.floor((edge * samples.length) / columns));
    for (let at = from!; at < to!; at++) {
      low = Math.min(low, samples[at]!);
      high = Math.max(high, samples[at]!);
    }
    return [low, high];
  });
  return { peaks, seconds: samples.length / rate };
}
