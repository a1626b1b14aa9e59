import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchCase, peersOr, trtforge } from '../context.js';
import { measureCommand } from '../measure.js';
import { costs } from '../result.js';

const PAIRS = 100_000;
const WORDS = 20;

const SCRIPT = `
import sys, jiwer
reference, hypothesis = (open(path).read().split("\\n")[:-1] for path in sys.argv[1:])
jiwer.process_words(reference, hypothesis)
`;

/** Transcripts scored, from process start to figures. */
export const wer: BenchCase = {
  name: 'wer',
  run: (context) => {
    const skipped: string[] = [];
    const [reference, hypothesis] = [join(context.folder, 'ref.txt'), join(context.folder, 'hyp.txt')];
    try {
      writeTexts(reference, hypothesis);
      const files = ['--ref', reference, '--hyp', hypothesis];
      const ours = measureCommand(trtforge(context, 'eval', 'wer', ...files, '--quiet'), context);
      const normalised = measureCommand(
        trtforge(context, 'eval', 'wer', ...files, '--normalizer', 'whisper-en', '--quiet'),
        context,
      );
      const peers = peersOr(context, skipped);
      const peer =
        peers === undefined
          ? undefined
          : {
              name: 'jiwer',
              runs: measureCommand([peers.python, '-c', SCRIPT, reference, hypothesis], context),
            };
      return {
        case: 'wer',
        title: `Word error rate of ${PAIRS} pairs of ${WORDS} words`,
        commands: [
          'trtforge eval wer --ref R --hyp H',
          'trtforge eval wer --ref R --hyp H --normalizer whisper-en',
          'jiwer.process_words',
        ],
        measurements: [
          ...costs('two files to figures', ours, peer, { seconds: 2, megabytes: 400 }),
          ...costs('with --normalizer whisper-en', normalised, undefined, { seconds: 2, megabytes: 400 }),
        ],
        skipped,
      };
    } finally {
      for (const file of [reference, hypothesis]) rmSync(file, { force: true });
    }
  },
};

/** A tenth of the words is replaced, dropped or doubled. */
function writeTexts(reference: string, hypothesis: string): void {
  // The minimal standard generator of Park and Miller: the same texts everywhere.
  let state = 1;
  const below = (limit: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % limit;
  };
  const lines = { spoken: '', heard: '' };
  for (let pair = 0; pair < PAIRS; pair++) {
    const words = Array.from({ length: WORDS }, () => `w${below(2000)}`);
    const heard = words.flatMap((word) => {
      if (below(10) > 0) return [word];
      return [[`w${below(2000)}`], [], [word, word]][below(3)]!;
    });
    lines.spoken += `${words.join(' ')}\n`;
    lines.heard += `${heard.join(' ')}\n`;
  }
  writeFileSync(reference, lines.spoken);
  writeFileSync(hypothesis, lines.heard);
}
