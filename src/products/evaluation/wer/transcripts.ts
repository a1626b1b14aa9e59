import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { readText } from '../../../base/files/files.js';
import { plural } from '../../../base/text/quantity.js';
import { faultText } from '../../../base/text/schema-error.js';
import { TrtforgeError } from '../../../errors.js';

/** One utterance: what was spoken, and what was recognised; `hypothesis` is null where there is none. */
export interface Utterance {
  readonly id: string;
  readonly reference: string;
  readonly hypothesis: string | null;
  /** Sample rate and SHA-256 of the samples that were transcribed; undefined where only texts are known. */
  readonly sound?: string | undefined;
  /** The file of its sound with the SHA-256 of its bytes. */
  readonly audio?: { readonly path: string; readonly sha256: string } | undefined;
}

export interface Transcripts {
  /** `lines`: line n of one file belongs to line n of the other; `manifest`: by `utt_id`. */
  readonly form: 'lines' | 'manifest';
  readonly utterances: readonly Utterance[];
}

/** More than transcripts of any test set: 3,000 hours of speech have some 200 MB. */
const LARGEST_TRANSCRIPT = 256 << 20;

const invalid = (message: string, remedy?: string, details?: Record<string, unknown>) =>
  new TrtforgeError('TF_EVAL_DATA', message, { ...(remedy === undefined ? {} : { remedy }), details });

function linesOf(path: string): readonly string[] {
  const text = readText(path, LARGEST_TRANSCRIPT, 'TF_EVAL_DATA').replace(/^\ufeff/, '');
  // A recogniser may write the replacement character itself.
  if (text.includes('\ufffd') && !isUtf8(readFileSync(path)))
    throw invalid(`${path} is not UTF-8, so different words may look equal.`);
  if (text.includes('\0')) throw invalid(`${path} is not text: it has bytes of 0.`);
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/**
 * Reads references and hypotheses. References are plain lines, or a manifest (see `readManifest`); its
 * hypotheses are lines of `utt_id`, a tab and the text, without a header. Throws TF_EVAL_DATA for numbers of lines that differ, ids twice, ids of
 * hypotheses that the manifest lacks, and columns that are missing.
 */
export function readTranscripts(referencePath: string, hypothesisPath: string): Transcripts {
  const references = linesOf(referencePath);
  const columns = references[0]?.split('\t') ?? [];
  if (columns.includes('utt_id') || columns.includes('ref_text') || isNeMo(references))
    return { form: 'manifest', utterances: byId(referencePath, references, hypothesisPath) };
  // Words have no tabs: this is a table, and its ids would be scored as words.
  if (columns.length > 1)
    throw invalid(
      `${referencePath} has ${columns.length} columns, and its first line names neither utt_id nor ref_text.`,
      'Name the columns utt_id and ref_text in the first line, or write plain text, an utterance a line.',
      { columns },
    );
  const hypotheses = linesOf(hypothesisPath);
  if (hypotheses.length !== references.length)
    throw invalid(
      `${referencePath} has ${references.length} lines and ${hypothesisPath} ${hypotheses.length}: line n of one belongs to line n of the other.`,
      'Write an empty line for an utterance without words, or use a manifest with utt_id and ref_text.',
      { references: references.length, hypotheses: hypotheses.length },
    );
  return {
    form: 'lines',
    utterances: references.map((reference, at) => ({
      id: String(at + 1),
      reference,
      hypothesis: hypotheses[at]!,
    })),
  };
}

/** One row of a manifest. */
export interface Spoken {
  readonly id: string;
  readonly reference: string;
  /** `wav_path` or `audio_filepath`; null where the manifest has no such column. */
  readonly audio: string | null;
}

/**
 * Reads a manifest: a TSV whose header has `utt_id` and `ref_text` (trt-asr-engine's), or NeMo's, a line of JSON for each utterance with `audio_filepath` and
 * `text`. Throws TF_EVAL_DATA for columns and fields that are missing, rows that are cut and ids twice.
 */
export const readManifest = (path: string): readonly Spoken[] => rowsOf(path, linesOf(path));

const isNeMo = ([first = '']: readonly string[]): boolean => first.startsWith('{');

const nemoSchema = z.looseObject({
  audio_filepath: z.string(),
  text: z.string(),
  /** Seconds; a part of a recording is not cut here. */
  offset: z.literal(0).nullish(),
});

/** An utterance is called as its recording is. */
function nemoRows(path: string, lines: readonly string[]): readonly Spoken[] {
  const seen = new Set<string>();
  return lines.flatMap((line, at): readonly Spoken[] => {
    if (line.trim() === '') return [];
    const parsed = nemoSchema.safeParse(parsedLine(line));
    if (!parsed.success)
      throw invalid(
        `Line ${at + 1} of ${path} is not an utterance of a NeMo manifest: ${faultText(parsed.error)}.`,
        'Write {"audio_filepath": "a.wav", "text": "…"}, a whole recording a line.',
      );
    const { audio_filepath: id, text: reference } = parsed.data;
    if (seen.has(id))
      throw invalid(`Line ${at + 1} of ${path} has the audio_filepath "${id}" a second time.`);
    seen.add(id);
    return [{ id, reference, audio: id }];
  });
}

function parsedLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return line;
  }
}

function rowsOf(path: string, lines: readonly string[]): readonly Spoken[] {
  if (isNeMo(lines)) return nemoRows(path, lines);
  const columns = lines[0]?.split('\t') ?? [];
  const [idColumn, textColumn] = [columns.indexOf('utt_id'), columns.indexOf('ref_text')];
  const audioColumn = columns.indexOf('wav_path');
  if (idColumn < 0 || textColumn < 0)
    throw invalid(
      `The manifest ${path} has no column "${idColumn < 0 ? 'utt_id' : 'ref_text'}".`,
      'Its first line names the columns, separated by tabs: utt_id, wav_path, ref_text; or each line is JSON as of NeMo.',
      { columns },
    );
  const seen = new Set<string>();
  return lines.slice(1).flatMap((line, at): readonly Spoken[] => {
    if (line.trim() === '') return [];
    const cells = line.split('\t');
    if (cells.length !== columns.length)
      throw invalid(
        `Line ${at + 2} of ${path} has ${plural(cells.length, 'column')}, its header ${columns.length}.`,
      );
    const id = cells[idColumn]!;
    if (seen.has(id)) throw invalid(`Line ${at + 2} of ${path} has the utt_id "${id}" a second time.`);
    seen.add(id);
    return [{ id, reference: cells[textColumn]!, audio: cells[audioColumn] ?? null }];
  });
}

function byId(path: string, lines: readonly string[], hypothesisPath: string): readonly Utterance[] {
  const spoken = rowsOf(path, lines);
  const hypotheses = readHypotheses(hypothesisPath);
  const known = new Set(spoken.map(({ id }) => id));
  const foreign = [...hypotheses.keys()].filter((id) => !known.has(id));
  if (foreign.length > 0)
    throw invalid(
      `${hypothesisPath} has ${foreign.length} utt_id that ${path} lacks, the first "${foreign[0]}".`,
      'Score transcripts with the manifest that they were made from.',
      { foreign: foreign.slice(0, 10), count: foreign.length },
    );
  return spoken.map(({ id, reference }) => ({ id, reference, hypothesis: hypotheses.get(id) ?? null }));
}

/** `utt_id<TAB>text` a line; one column is an empty hypothesis. */
function readHypotheses(path: string): ReadonlyMap<string, string> {
  const hypotheses = new Map<string, string>();
  linesOf(path).forEach((line, at) => {
    if (line.trim() === '') return;
    const [id = '', text = '', ...more] = line.split('\t');
    if (more.length > 0)
      throw invalid(`Line ${at + 1} of ${path} has ${more.length + 2} columns instead of utt_id and text.`);
    if (hypotheses.has(id)) throw invalid(`Line ${at + 1} of ${path} has the utt_id "${id}" a second time.`);
    hypotheses.set(id, text);
  });
  return hypotheses;
}
