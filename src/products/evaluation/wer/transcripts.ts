import { invalid, isNeMo, linesOf, rowsOf } from './manifest.js';

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
