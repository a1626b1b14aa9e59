import { sha256 } from '../../../base/files/digest.js';
import { publishFile } from '../../../base/files/publish.js';
import * as is from '../../../base/options/kinds.js';
import { assertWithin } from '../../../base/options/library-arguments.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { plural } from '../../../base/text/quantity.js';
import { TrtforgeError } from '../../../errors.js';
import { speechOptions } from '../../../quality/tasks/options.js';
import { taskIdentity } from '../../../quality/tasks/task.js';
import { allowMissing as allowed } from '../options.js';
import { countCharacters, countEdits } from './edits.js';
import { type Normalizer, normalizers } from './normalizers.js';
import type { UtteranceScore, WerResult } from './result.js';
import { readTranscripts, type Utterance } from './transcripts.js';

export const werOptions = {
  /** Text, an utterance a line, or a manifest (TSV with `utt_id` and `ref_text`). */
  reference: needed(is.text, {
    flags: '--ref <file>',
    describe: 'what was spoken: an utterance a line, or a manifest (TSV with utt_id and ref_text)',
    required: '--ref FILE',
  }),
  /** Text, an utterance a line; of a manifest `utt_id<TAB>text`. */
  hypothesis: needed(is.text, {
    flags: '--hyp <file>',
    describe: 'what was recognised: an utterance a line, or utt_id, tab, text for a manifest',
    required: '--hyp FILE',
  }),
  /** Id of a normaliser; default `none`. */
  normalizer: speechOptions.normalizer,
  /** Number of utterances of a manifest that may have no hypothesis: they count as all deleted. Default 0. */
  allowMissing: {
    ...allowed,
    flags: '--allow-missing <count>',
    describe: 'how many utterances of a manifest may have no hypothesis; their words count as deleted',
  },
  /** Where the score of every utterance goes, as TSV. */
  scores: optional(is.text, {
    flags: '-o, --output <file>',
    describe: 'the score of every utterance, as TSV',
    writes: true,
  }),
};

export interface WerRequest extends OptionsOf<typeof werOptions> {}

/** The revision goes up when the same texts may score differently. */
const TASK = { id: 'wer', revision: 2 } as const;
const WORST = 20;

/**
 * Word error rate of transcripts: substitutions, deletions and insertions over the words of the references, as jiwer 4 counts them. Throws TF_EVAL_DATA for
 * files that cannot be scored (see `readTranscripts`), for more missing hypotheses than allowed, and for utterances too long to align.
 */
export function scoreTranscripts(request: WerRequest): WerResult {
  assertWithin(werOptions, request);
  const { reference, hypothesis, allowMissing = 0 } = request;
  const { form, utterances } = readTranscripts(reference, hypothesis);
  const missing = utterances.filter((each) => each.hypothesis === null);
  if (missing.length > allowMissing)
    throw new TrtforgeError(
      'TF_EVAL_DATA',
      `${hypothesis} has no line for ${plural(missing.length, 'utterance')} of ${reference}, the first "${missing[0]!.id}".`,
      {
        remedy: `Transcribe them, or pass --allow-missing ${missing.length} to count their words as deleted.`,
        details: { missing: missing.slice(0, 10).map(({ id }) => id), count: missing.length },
      },
    );
  const scored = scoreUtterances(reference, utterances, request.normalizer ?? 'none', request.scores);
  return { schema: 'trtforge.eval-wer/1', form, ...scored };
}

/**
 * Scores utterances, wherever they come from; a missing hypothesis counts as all deleted. `scores` is where the score of each goes, as TSV. Throws
 * TF_USAGE for a normaliser that there is not, TF_EVAL_DATA for no utterance and for utterances too long to align.
 */
export function scoreUtterances(
  from: string,
  utterances: readonly Utterance[],
  normalizerId: string,
  scoresPath: string | undefined,
): Omit<WerResult, 'schema' | 'form'> {
  const normalizer = normalizerNamed(normalizerId);
  if (utterances.length === 0) throw new TrtforgeError('TF_EVAL_DATA', `${from} has no utterance.`);
  const missing = utterances.filter(({ hypothesis }) => hypothesis === null).map(({ id }) => id);
  const scored = utterances.map((utterance) => scoreUtterance(utterance, normalizer));
  const scores = scored.map(({ score }) => score);
  if (scoresPath !== undefined) publishFile(scoresPath, scoresTable(scores, utterances));
  const rows = utterances.map(({ id, reference, sound }) =>
    [id, reference, ...(sound === undefined ? [] : [sound])].join('\t'),
  );
  const dataDigest = sha256(rows.map((row) => `${row}\n`).join(''));
  const settings = { normalizer: normalizer.id, ...(missing.length === 0 ? {} : { missing }) };
  const { comparabilityKey } = taskIdentity(TASK, settings, scores.length, dataDigest);
  const totals = totalsOf(scores, scored);
  return {
    ...totals,
    utterances: scores.length,
    missingHypotheses: missing.length,
    normalizer: normalizer.id,
    dataDigest,
    comparabilityKey,
    metrics: [
      { name: 'wer', value: totals.wer, unit: 'share', higherIsBetter: false },
      { name: 'meanWer', value: totals.meanWer, unit: 'share', higherIsBetter: false },
      { name: 'cer', value: totals.cer, unit: 'share', higherIsBetter: false },
    ],
    worst: [...scores]
      .filter((score) => editsOf(score) > 0)
      .sort((a, b) => editsOf(b) - editsOf(a))
      .slice(0, WORST),
    scores: scoresPath ?? null,
    warnings: warningsOf(totals, missing.length, scores.length),
  };
}

function normalizerNamed(id: string): Normalizer {
  const found = normalizers.find((each) => each.id === id);
  if (found !== undefined) return found;
  const known = normalizers.map((each) => each.id);
  throw new TrtforgeError('TF_USAGE', `No normaliser is called "${id}".`, {
    remedy: `Available: ${known.join(', ')}.`,
    details: { known },
  });
}

const editsOf = ({ substitutions, deletions, insertions }: UtteranceScore): number =>
  substitutions + deletions + insertions;

interface ScoredUtterance {
  readonly score: UtteranceScore;
  readonly characters: ReturnType<typeof countCharacters>;
}

function scoreUtterance(
  { id, reference, hypothesis }: Utterance,
  { words, characters }: Normalizer,
): ScoredUtterance {
  const [expected, recognised] = [words(reference), words(hypothesis ?? '')];
  const edits = countEdits(expected, recognised);
  if (edits === null)
    throw new TrtforgeError(
      'TF_EVAL_DATA',
      `Utterance "${id}" is too long to align: ${expected.length} words beside ${recognised.length}.`,
      { remedy: 'Write one utterance a line.', details: { id } },
    );
  const count = edits.substitutions + edits.deletions + edits.insertions;
  const texts = { reference: expected.join(' '), hypothesis: recognised.join(' ') };
  return {
    characters:
      characters === undefined
        ? countCharacters(texts.reference, texts.hypothesis)
        : countCharacters(characters(reference), characters(hypothesis ?? '')),
    score: {
      id,
      wer: expected.length === 0 ? Math.min(1, count) : count / expected.length,
      ...edits,
      refWords: expected.length,
      hypWords: recognised.length,
      ...texts,
    },
  };
}

/** A rate; null where something is counted over nothing. */
const rate = (edits: number, of: number): number | null => (of > 0 ? edits / of : edits === 0 ? 0 : null);

function totalsOf(scores: readonly UtteranceScore[], scored: readonly ScoredUtterance[]) {
  const sum = (value: (score: UtteranceScore) => number) =>
    scores.reduce((total, score) => total + value(score), 0);
  const edits = sum(editsOf);
  const refWords = sum(({ refWords }) => refWords);
  return {
    wer: rate(edits, refWords),
    meanWer: sum(({ wer }) => wer) / scores.length,
    cer: rate(
      scored.reduce((total, { characters }) => total + characters.edits, 0),
      scored.reduce((total, { characters }) => total + characters.of, 0),
    ),
    edits,
    substitutions: sum(({ substitutions }) => substitutions),
    deletions: sum(({ deletions }) => deletions),
    insertions: sum(({ insertions }) => insertions),
    refWords,
    hypWords: sum(({ hypWords }) => hypWords),
    emptyHypotheses: scores.filter(({ hypWords, refWords }) => hypWords === 0 && refWords > 0).length,
    emptyReferences: scores.filter(({ refWords }) => refWords === 0).length,
  };
}

function warningsOf(
  { emptyHypotheses, emptyReferences }: { emptyHypotheses: number; emptyReferences: number },
  missing: number,
  utterances: number,
): readonly string[] & string[] {
  const warnings: string[] = [];
  if (missing > 0)
    warnings.push(`${missing} of ${utterances} utterances have no hypothesis; their words count as deleted.`);
  if (emptyHypotheses > missing)
    warnings.push(`${emptyHypotheses - missing} of ${utterances} hypotheses have no word.`);
  if (emptyReferences > 0)
    warnings.push(
      `${emptyReferences} of ${utterances} references have no word; what was recognised there counts as inserted.`,
    );
  return warnings;
}

/**
 * Columns as trt-asr-engine's scores.tsv has them after variant and round, and the files of the sound where they are known. A tab or an end of a line inside a text is a
 * space there, so that every row has its columns.
 */
const scoresTable = (scores: readonly UtteranceScore[], utterances: readonly Utterance[]): string =>
  [
    [
      ...['utt_id', 'wer', 'subs', 'ins', 'dels', 'ref_words', 'hyp_words', 'ref', 'hyp'],
      ...(utterances[0]?.audio === undefined ? [] : ['audio', 'audio_sha256']),
    ],
    ...scores.map((s, at) => [
      s.id,
      s.wer,
      s.substitutions,
      s.insertions,
      s.deletions,
      s.refWords,
      s.hypWords,
      ...[s.reference, s.hypothesis, ...audioOf(utterances[at])].map((text) =>
        text.replace(/[\t\r\n]/g, ' '),
      ),
    ]),
  ]
    .map((row) => `${row.join('\t')}\n`)
    .join('');

const audioOf = ({ audio }: Partial<Utterance> = {}): readonly string[] =>
  audio === undefined ? [] : [audio.path, audio.sha256];
