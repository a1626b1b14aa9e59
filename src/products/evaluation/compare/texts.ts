import { join } from 'node:path';
import { LARGEST_DOCUMENT, readText, statIfThere } from '../../../base/files/files.js';
import { pairOf } from '../../../quality/predictions/prediction.js';
import { countEdits } from '../wer/word-errors.js';
import type { ComparedVariant, Comparison } from './result.js';

const MOST_SHOWN = 12;

/** A row of scores.tsv whose recording is known. */
interface Heard {
  readonly id: string;
  readonly text: string;
  readonly file: string;
  readonly sha256: string;
}

/** The utterances of which variants heard other words than the reference that they are compared with, by the scores that their folders have. */
export function textsApart(
  root: string,
  pairs: Comparison['accuracy'],
  variants: readonly ComparedVariant[],
): NonNullable<Comparison['texts']> {
  const heardBy = (name: string) =>
    heardIn(join(root, variants.find((each) => each.name === name)?.folder ?? '', 'scores.tsv'));
  return pairs.map(({ variant, reference }) => {
    const ours = new Map(heardBy(variant).map((heard) => [heard.id, heard.text]));
    const apart = heardBy(reference).flatMap(({ id, text, file, sha256 }, sample) => {
      const other = ours.get(id) ?? '';
      if (other === text) return [];
      const edits = countEdits(text.split(' '), other.split(' '));
      const turned =
        edits === null
          ? {}
          : { lost: edits.substitutions + edits.deletions, new: edits.substitutions + edits.insertions };
      const pair = pairOf({ kind: 'text', text }, { kind: 'text', text: other });
      return [{ sample, file, sha256, size: null, share: null, ...pair, ...turned }];
    });
    const samples = apart.toSorted((a, b) => b.lost + b.new - a.lost - a.new).slice(0, MOST_SHOWN);
    return { variant, differ: apart.length, samples };
  });
}

/** Empty where a run of a version before wrote the scores. */
function heardIn(path: string): readonly Heard[] {
  if (statIfThere(path) === undefined) return [];
  const [header = '', ...rows] = readText(path, LARGEST_DOCUMENT, 'TF_EVAL_DATA').split('\n');
  const names = header.split('\t');
  if (!names.includes('audio_sha256')) return [];
  return rows.flatMap((row) => {
    const cells = row.split('\t');
    const of = (name: string) => cells[names.indexOf(name)] ?? '';
    return cells.length === names.length
      ? [{ id: of('utt_id'), text: of('hyp'), file: of('audio'), sha256: of('audio_sha256') }]
      : [];
  });
}
