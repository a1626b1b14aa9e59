import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { readText } from '../../../base/files/files.js';
import { plural } from '../../../base/text/quantity.js';
import { faultText } from '../../../base/text/schema-error.js';
import { TrtforgeError } from '../../../errors.js';

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

export const isNeMo = ([first = '']: readonly string[]): boolean => first.startsWith('{');

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

export function rowsOf(path: string, lines: readonly string[]): readonly Spoken[] {
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

/** More than transcripts of any test set: 3,000 hours of speech have some 200 MB. */
const LARGEST_TRANSCRIPT = 256 << 20;

export const invalid = (message: string, remedy?: string, details?: Record<string, unknown>) =>
  new TrtforgeError('TF_EVAL_DATA', message, { ...(remedy === undefined ? {} : { remedy }), details });

export function linesOf(path: string): readonly string[] {
  const text = readText(path, LARGEST_TRANSCRIPT, 'TF_EVAL_DATA').replace(/^\ufeff/, '');
  // A recogniser may write the replacement character itself.
  if (text.includes('\ufffd') && !isUtf8(readFileSync(path)))
    throw invalid(`${path} is not UTF-8, so different words may look equal.`);
  if (text.includes('\0')) throw invalid(`${path} is not text: it has bytes of 0.`);
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}
