import { choice, flag, type OptionValues, option, text } from '../../../cli/option.js';
import { comparisonOptions, placeOptions, toleranceOptions } from '../../../cli/options/comparison.js';
import { integer, splitAtCommas } from '../../../cli/values.js';
import { chooseBackEnd } from '../../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../../errors.js';
import { type DriftPolicy, defaultPolicy } from '../compare/drift-policy.js';
import { passRules } from '../compare/tensor-parity.js';
import { parityModes } from '../verify/plan.js';

/** Options of `stream verify`, besides those of loading. */
export const referenceOptions = {
  reference: text({
    flags: '--reference <place>',
    describe: 'a recorded stream (JSONL, or the folder of a compact one): run it chunk by chunk',
    required: '--reference REFERENCE (`trtforge stream record` records one)',
  }),
  mode: choice({
    flags: '--mode <mode>',
    describe:
      'functional: every chunk is given the recorded state; closed-loop: what the candidate left (default: closed-loop)',
    choices: parityModes,
  }),
  contract: text({
    flags: '--contract <file>',
    describe: 'what the model promises of shapes, lengths and state (default: drafted from its bindings)',
  }),
  rule: choice({
    flags: '--rule <rule>',
    advanced: true,
    describe:
      'tensor: largest error within atol, or largest relative error within rtol; allclose: every element within atol + rtol * |reference| (default: tensor)',
    choices: passRules,
  }),
  drift: option({
    flags: '--drift <limits>',
    describe:
      'limits of the main output over the stream: p95=5e-4,max=1e-3,mean=2e-4,slope=1e-6,latency=21 (ms); off for none',
    parse: parsePolicy,
  }),
  decoder: text({
    flags: '--decoder <meta>',
    describe:
      "judge the task: a bundle's model_meta.json, whose predictor and joint network decode both encoder outputs; tokens and durations must be the same",
  }),
  swap: text({
    flags: '--swap <meta>',
    advanced: true,
    describe:
      "with --decoder: the bundle of the candidate's own predictor and joint network; each encoder is decoded by each decoder, to tell which of them an error comes from",
  }),
  taskOutput: text({
    flags: '--task-output <name>',
    advanced: true,
    describe:
      'the output that the task is about: what --decoder decodes (default: the main one), or alone, class scores whose largest along the last axis must agree',
  }),
  sensitivity: flag({
    flags: '--sensitivity',
    advanced: true,
    describe:
      'disturb every state of the last chunk, with zeros and noise, and tell how far the main output moves: a state that is not read proves nothing',
  }),
  chunks: option({
    flags: '--chunks <count>',
    describe: 'how many chunks of the reference to run (default: all)',
    parse: integer(1),
  }),
  dump: text({
    flags: '--dump <folder>',
    describe: 'write failing chunks there as npz, with inputs, got_ and ref_ outputs',
    writes: true,
  }),
  dumpLimit: option({
    flags: '--dump-limit <count>',
    advanced: true,
    describe: 'how many failing chunks to write',
    parse: integer(0, 100_000),
    default: 5,
  }),
  summaryJson: text({
    flags: '--summary-json <file>',
    advanced: true,
    describe: 'also write the summary that scripts of the streaming encoder read',
    writes: ['JSON (mode)'],
  }),
  report: text({
    flags: '--report <file>',
    describe: 'also write a page with the drift chart there',
    writes: ['an HTML page'],
  }),
  beside: text({
    flags: '--beside <file>',
    advanced: true,
    describe:
      'a result or summary of another run over the same reference: tell whether two providers were one, and of two engines built with and without TF32 whether TF32 is the cause',
    repeat: true,
  }),
  batches: option({
    flags: '--batches <sizes>',
    advanced: true,
    describe: 'engines: time batches 1,2,4,8 and changes between profiles after the stream',
    parse: (list: string) => splitAtCommas(list).map(integer(1, 65_536)),
    repeat: true,
  }),
  ...toleranceOptions,
  threads: comparisonOptions.threads,
  ...placeOptions,
};

export type ReferenceOptions = OptionValues<typeof referenceOptions>;

/** Throws TF_USAGE for options that need another one, and for those that the candidate's back end does not honour. */
export function assertApplicable(candidate: string, options: ReferenceOptions): void {
  const { swap, decoder, threads, provider, batches } = options;
  if (swap !== undefined && decoder === undefined)
    throw new TrtforgeError('TF_USAGE', '--swap exchanges decoders, and there is only one.', {
      remedy: 'Pass the bundle of the reference, too: --decoder META --swap META.',
    });
  const { takes } = chooseBackEnd(candidate, { threads, provider });
  if (takes === 'engine' || batches.length === 0) return;
  throw new TrtforgeError('TF_USAGE', `--batches has no effect on ${candidate}, which is a model.`, {
    remedy: 'Remove --batches: it is for engines.',
    details: { option: '--batches' },
  });
}

const LIMITS = { p95: 'p95', max: 'max', mean: 'mean', slope: 'slope', latency: 'latencyMs' } as const;

/** Reads `p95=5e-4,slope=off`, or `off`; limits that are not named stay the usual ones. Wrapped, since null means off. */
function parsePolicy(limits: string): { readonly policy: DriftPolicy | null } {
  if (limits === 'off') return { policy: null };
  const policy: { -readonly [K in keyof DriftPolicy]: DriftPolicy[K] } = { ...defaultPolicy };
  for (const part of splitAtCommas(limits)) {
    const [name = '', value = ''] = part.split('=');
    const key = LIMITS[name as keyof typeof LIMITS];
    const limit = value === 'off' ? null : Number(value);
    if (
      key === undefined ||
      value.trim() === '' ||
      (limit !== null && !(limit >= 0 && Number.isFinite(limit)))
    ) {
      throw new TrtforgeError('TF_USAGE', `"${part}" is not a limit of the drift.`, {
        remedy: `Write ${Object.keys(LIMITS).join(', ')} with a number or off: p95=5e-4,slope=off; or off alone.`,
      });
    }
    policy[key] = limit;
  }
  return { policy };
}
