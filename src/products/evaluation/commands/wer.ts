import { defineCommand, type TextOutput } from '../../../cli/command.js';
import type { WerResult } from '../wer/result.js';
import { scoreTranscripts, werOptions } from '../wer/wer.js';

/** WER is read to a hundredth of a percent. */
const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;

export const command = defineCommand({
  examples: [
    'trtforge eval wer --ref ref.txt --hyp hyp.txt --normalizer whisper-en',
    'trtforge eval wer --ref manifest.tsv --hyp transcripts.tsv --normalizer seed -o scores.tsv',
  ],
  options: werOptions,
  schema: async () => (await import('../wer/result.js')).werResultSchema,
  run: async (_inputs, request): Promise<WerResult> => scoreTranscripts(request),
  render: (result, output) => renderWer(result, output),
});

/** The rate, its parts, the worst utterances, and what is odd about the data. */
export function renderWer(result: Omit<WerResult, 'schema' | 'form'>, output: TextOutput): void {
  const { bold, dim, yellow } = output.colors;
  output.line(
    `${bold('WER')} ${result.wer === null ? 'undefined: no reference has a word' : bold(percent(result.wer))}  ${dim(
      `${result.edits} edits of ${result.refWords} words: ${result.substitutions} substituted, ${result.deletions} deleted, ${result.insertions} inserted`,
    )}`,
  );
  const cer = result.cer === null ? 'undefined' : percent(result.cer);
  output.line(
    `mean of ${result.utterances} utterances ${percent(result.meanWer ?? 0)}, CER ${cer}, normaliser ${result.normalizer}`,
  );
  for (const { id, wer, reference, hypothesis } of result.worst.slice(0, 5)) {
    output.line();
    output.line(`  ${bold(id)}  ${percent(wer)}`);
    output.line(`    ref  ${reference}`);
    output.line(`    hyp  ${hypothesis}`);
  }
  if (result.worst.length > 0) output.line();
  for (const warning of result.warnings) output.line(yellow(warning));
  if (result.scores !== null) output.line(`scores of all utterances: ${result.scores}`);
  output.line(
    dim(
      `data ${result.dataDigest.slice(0, 12)}; compare it only with results of key ${result.comparabilityKey.slice(0, 12)}`,
    ),
  );
}
