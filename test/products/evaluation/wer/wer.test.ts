import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { werResultSchema } from '../../../../src/products/evaluation/wer/result.js';
import { scoreTranscripts, type WerRequest } from '../../../../src/products/evaluation/wer/wer.js';
import { codeOf } from '../../../support/refusal.js';
import { runs } from '../../../support/runs.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-wer-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const file = (content: string | Uint8Array) => {
  const path = join(folder, `${files++}.txt`);
  writeFileSync(path, content);
  return path;
};
const score = (reference: string, hypothesis: string, more: Partial<WerRequest> = {}) =>
  scoreTranscripts({ reference: file(reference), hypothesis: file(hypothesis), ...more });
const MANIFEST =
  'utt_id\twav_path\tref_text\na\ta.wav\tthe cat sat\nb\tb.wav\ton the mat\nc\tc.wav\tquietly\n';

describe('lines', () => {
  it('agrees with jiwer on the corpus', () => {
    const recorded = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../../fixtures/evaluation/speech.json'), 'utf8'),
    ) as {
      readonly pairs: readonly (readonly [string, string])[];
      readonly wer: number;
      readonly cer: number;
    };
    const result = score(
      recorded.pairs.map(([reference]) => `${reference}\n`).join(''),
      recorded.pairs.map(([, hypothesis]) => `${hypothesis}\n`).join(''),
    );
    expect(result.wer).toBe(recorded.wer);
    expect(result.cer).toBe(recorded.cer);
    expect(werResultSchema.parse(result)).toEqual(result);
  });

  it('counts every space between words as a character, as jiwer does', () => {
    expect(score(' a  b\n', 'a b\n')).toMatchObject({ wer: 0, cer: 1 / 4 });
    expect(score('a  b\n', 'a b\n', { normalizer: 'seed' })).toMatchObject({ wer: 0, cer: 0 });
  });

  it('writes a row of nine columns whatever the texts have', () => {
    const scores = join(folder, 'tabs.tsv');
    const { worst } = score('a b\nc\td\n', 'a b\nc\te\rf\n', { scores });
    const rows = readFileSync(scores, 'utf8').split(/[\n\r]/);
    expect(rows.slice(0, -1).map((row) => row.split('\t').length)).toEqual([9, 9, 9]);
    expect(rows[2]?.split('\t').slice(5)).toEqual(['1', '1', 'c d', 'c e f']);
    expect(worst[0]).toMatchObject({ reference: 'c\td', hypothesis: 'c\te\rf' });
  });

  it('counts empty hypotheses and references and warns of both', () => {
    const result = score('a b\n\nc\n', '\nx y\nc\n');
    expect(result).toMatchObject({
      edits: 4,
      deletions: 2,
      insertions: 2,
      refWords: 3,
      emptyHypotheses: 1,
      emptyReferences: 1,
      wer: 4 / 3,
      meanWer: (1 + 1 + 0) / 3,
    });
    expect(result.warnings).toHaveLength(2);
  });

  it('has no rate where no reference has a word', () => {
    expect(score('\n', 'a\n')).toMatchObject({ wer: null, cer: null, edits: 1 });
    expect(score('\n', '\n')).toMatchObject({ wer: 0, cer: 0 });
  });

  it('compares results of equal data and normaliser alone', () => {
    const key = (reference: string, normalizer?: string) =>
      score(reference, 'a\n', { normalizer }).comparabilityKey;
    expect(key('a\n')).toBe(key('a\r\n'));
    expect(key('a\n')).not.toBe(key('b\n'));
    expect(key('a\n')).not.toBe(key('a\n', 'seed'));
  });

  it.each([
    ['numbers of lines that differ', 'a\nb\n', 'a\n'],
    ['no utterance', '', ''],
    ['bytes that are no text', 'a\0b\n', 'a\n'],
    ['tables without known columns', 'id\ttext\na\tone\n', 'id\ttext\na\tone\n'],
  ])('rejects %s', (_, reference, hypothesis) => {
    expect(codeOf(() => score(reference, hypothesis))).toBe('TF_EVAL_DATA');
  });

  it('rejects text that is not UTF-8, in which different words may look equal', () => {
    const latin1 = (text: string) => file(Buffer.from(text, 'latin1'));
    const pair = { reference: latin1('caf\u00e9'), hypothesis: latin1('caf\u00e8') };
    expect(codeOf(() => scoreTranscripts(pair))).toBe('TF_EVAL_DATA');
    expect(score('a \ufffd', 'a \ufffd').wer).toBe(0);
  });

  it('rejects a normaliser that there is not', () => {
    expect(codeOf(() => score('a\n', 'a\n', { normalizer: 'whisper' }))).toBe('TF_USAGE');
  });
});

describe('a manifest', () => {
  it('scores by utt_id, in any order, one column being an empty hypothesis', () => {
    const result = score(MANIFEST, 'c\nb\ton a mat\na\tthe cat sat\n');
    expect(result).toMatchObject({
      form: 'manifest',
      utterances: 3,
      substitutions: 1,
      deletions: 1,
      emptyHypotheses: 1,
      missingHypotheses: 0,
    });
    expect(result.worst.map(({ id }) => id).sort()).toEqual(['b', 'c']);
  });

  it('rejects missing hypotheses unless they are allowed, and counts their words as deleted', () => {
    expect(codeOf(() => score(MANIFEST, 'a\tthe cat sat\n', { allowMissing: 1 }))).toBe('TF_EVAL_DATA');
    const result = score(MANIFEST, 'a\tthe cat sat\n', { allowMissing: 2 });
    expect(result).toMatchObject({ missingHypotheses: 2, deletions: 4, wer: 4 / 7 });
    const other = score(MANIFEST, 'b\ton the mat\nc\tquietly\n', { allowMissing: 2 });
    const whole = score(MANIFEST, 'a\tthe cat sat\nb\ton the mat\nc\tquietly\n', { allowMissing: 2 });
    const all = [result, other, whole];
    expect(new Set(all.map(({ comparabilityKey }) => comparabilityKey)).size).toBe(3);
    expect(new Set(all.map(({ dataDigest }) => dataDigest)).size).toBe(1);
    expect(result.warnings).toHaveLength(1);
  });

  it.each([
    ['a column that is missing', MANIFEST.replace('ref_text', 'text'), 'a\tx\n'],
    ['an utt_id twice', `${MANIFEST}a\ta.wav\tthe cat\n`, 'a\tx\n'],
    ['a row of fewer columns', `${MANIFEST}d\td.wav\n`, 'a\tx\n'],
    ['a hypothesis twice', MANIFEST, 'a\tx\na\ty\n'],
    ['a hypothesis of another manifest', MANIFEST, 'z\tx\n'],
    ['a hypothesis of three columns', MANIFEST, 'a\tx\ty\n'],
  ])('rejects %s', (_, reference, hypothesis) => {
    expect(codeOf(() => score(reference, hypothesis, { allowMissing: 9 }))).toBe('TF_EVAL_DATA');
  });

  it('writes the score of every utterance', () => {
    const scores = join(folder, 'scores.tsv');
    score(MANIFEST, 'a\tthe hat sat\nb\ton the mat\nc\tquietly\n', { scores });
    const rows = readFileSync(scores, 'utf8')
      .split('\n')
      .map((line) => line.split('\t'));
    expect(rows[0]).toEqual('utt_id wer subs ins dels ref_words hyp_words ref hyp'.split(' '));
    expect(rows[1]?.slice(0, 7)).toEqual(['a', String(1 / 3), '1', '0', '0', '3', '3']);
    expect(rows).toHaveLength(5);
  });

  it('returns or throws TF_EVAL_DATA for any bytes', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 40 }),
        fc.nat(MANIFEST.length),
        fc.boolean(),
        (bytes, at, second) => {
          const mutated = Buffer.concat([
            Buffer.from(MANIFEST.slice(0, at)),
            bytes,
            Buffer.from(MANIFEST.slice(at)),
          ]);
          const other = Buffer.from('a\tthe cat sat\nb\nc\tx\n');
          const code = codeOf(() =>
            scoreTranscripts({
              reference: file(second ? other : mutated),
              hypothesis: file(second ? mutated : other),
            }),
          );
          expect(['no error', 'TF_EVAL_DATA']).toContain(code);
        },
      ),
      { numRuns: runs(1000) },
    );
  });
});
