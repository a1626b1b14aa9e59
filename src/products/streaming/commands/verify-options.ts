import type { OptionValues } from '../../../base/options/option.js';
import { text } from '../../../cli/option.js';
import { comparisonOptions, placeOptions } from '../../../cli/options/comparison.js';
import { chooseBackEnd } from '../../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../../errors.js';
import { limitOptions, streamOptions } from '../verify/options.js';

/** Options of `stream verify`, besides those of loading. */
export const referenceOptions = {
  ...streamOptions,
  contract: text({
    flags: '--contract <file>',
    describe: 'contract of shapes, lengths and state (default: drafted from the bindings)',
  }),
  summaryJson: text({
    flags: '--summary-json <file>',
    advanced: true,
    describe: 'also write the summary for scripts of the streaming encoder',
    writes: ['JSON (mode)'],
  }),
  report: text({
    flags: '--report <file>',
    describe: 'also write an HTML page with the drift chart',
    writes: ['an HTML page'],
  }),
  beside: text({
    flags: '--beside <file>',
    advanced: true,
    describe:
      'result (--json) of another run over the same reference: finds two providers that were one, and whether TF32 causes the error of two engines',
    repeat: true,
  }),
  ...limitOptions,
  threads: comparisonOptions.threads,
  ...placeOptions,
};

/** Throws TF_USAGE for options that the candidate's back end does not honour. */
export function assertApplicable(candidate: string, options: OptionValues<typeof referenceOptions>): void {
  const { takes } = chooseBackEnd(candidate, options);
  if (takes === 'engine' || options.batches.length === 0) return;
  throw new TrtforgeError('TF_USAGE', `--batches has no effect on ${candidate}, which is a model.`, {
    remedy: 'Remove --batches: it is for engines.',
    details: { option: '--batches' },
  });
}
