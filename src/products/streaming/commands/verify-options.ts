import { splitAtCommas } from '../../../base/options/readers.js';
import { choice, type OptionValues, option, text } from '../../../cli/option.js';
import { comparisonOptions, placeOptions } from '../../../cli/options/comparison.js';
import { integer } from '../../../cli/values.js';
import { chooseBackEnd } from '../../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../../errors.js';
import { minAgreementOption } from '../../../quality/tasks/decisions.js';
import { verifyOptions } from '../../../quality/verify/request.js';
import { toleranceOptions } from '../../../quality/verify/tolerance.js';
import type { DriftPolicy } from '../compare/drift.js';
import { passRules } from '../compare/tensor-parity.js';
import { parityModes } from '../verify/plan.js';

/** Options of `stream verify`, besides those of loading. */
export const referenceOptions = {
  reference: text({
    flags: '--reference <place>',
    describe: 'recorded stream to run, as JSON lines',
    required: '--reference REFERENCE',
  }),
  mode: choice({
    flags: '--mode <mode>',
    describe: 'state of each chunk: functional, as recorded; closed-loop, as the candidate left it',
    choices: parityModes,
    default: 'closed-loop',
  }),
  contract: text({
    flags: '--contract <file>',
    describe: 'contract of shapes, lengths and state (default: drafted from the bindings)',
  }),
  rule: choice({
    flags: '--rule <rule>',
    advanced: true,
    describe:
      'tensor: largest error within atol, or largest relative error within rtol; allclose: every element within atol + rtol * |reference|',
    choices: passRules,
    default: 'tensor',
  }),
  drift: option({
    flags: '--drift <limits>',
    describe:
      'limits of the main output over the stream: max=1e-3,pass-rate=0.8,mean=2e-4,slope=1e-6 (these by default, as many times wider as its tolerance), p95=5e-4,latency=21 (ms); off: every chunk has to be within its tolerance',
    parse: parsePolicy,
  }),
  decoder: text({
    flags: '--decoder <meta>',
    describe:
      'model_meta.json of a bundle whose predictor and joint network decode both encoder outputs; tokens and durations must be the same',
  }),
  taskOutput: text({
    flags: '--task-output <name>',
    advanced: true,
    describe:
      'output of the task: what --decoder decodes (default: the main one); alone: class scores whose largest along the last axis must agree',
  }),
  minAgreement: minAgreementOption,
  chunks: option({
    flags: '--chunks <count>',
    describe: 'how many chunks of the reference to run (default: all)',
    parse: integer(1),
  }),
  dump: text({
    flags: '--dump <folder>',
    describe: 'folder for failing chunks as npz, with inputs, got_ and ref_ outputs',
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
  batches: option({
    flags: '--batches <sizes>',
    advanced: true,
    describe: 'engines: also time batches 1,2,4,8 and changes between profiles',
    parse: (list: string) => splitAtCommas(list).map(integer(1, 65_536)),
    repeat: true,
  }),
  precision: verifyOptions.precision,
  atol: toleranceOptions.atol,
  rtol: {
    ...toleranceOptions.rtol,
    describe: 'relative tolerance, likewise; --rule decides how the two count',
  },
  threads: comparisonOptions.threads,
  ...placeOptions,
};

export type ReferenceOptions = OptionValues<typeof referenceOptions>;

/** Throws TF_USAGE for options that the candidate's back end does not honour. */
export function assertApplicable(candidate: string, options: ReferenceOptions): void {
  const { takes } = chooseBackEnd(candidate, options);
  if (takes === 'engine' || options.batches.length === 0) return;
  throw new TrtforgeError('TF_USAGE', `--batches has no effect on ${candidate}, which is a model.`, {
    remedy: 'Remove --batches: it is for engines.',
    details: { option: '--batches' },
  });
}

const LIMITS = {
  max: 'max',
  'pass-rate': 'passRate',
  p95: 'p95',
  mean: 'mean',
  slope: 'slope',
  latency: 'latencyMs',
} as const;

/** Reads `max=5e-4,slope=off`, or `off`; limits that are not named stay the usual ones. Wrapped, since null means off. */
function parsePolicy(limits: string): { readonly policy: Partial<DriftPolicy> | null } {
  if (limits === 'off') return { policy: null };
  const policy: { -readonly [K in keyof DriftPolicy]?: DriftPolicy[K] } = {};
  for (const part of splitAtCommas(limits)) {
    const [name = '', value = ''] = part.split('=');
    const key = LIMITS[name as keyof typeof LIMITS];
    const limit = value === 'off' ? null : Number(value);
    if (
      key === undefined ||
      value.trim() === '' ||
      (limit !== null && !(limit >= 0 && limit <= (key === 'passRate' ? 1 : Number.MAX_VALUE)))
    ) {
      throw new TrtforgeError('TF_USAGE', `"${part}" is not a limit of the drift.`, {
        remedy: `Write ${Object.keys(LIMITS).join(', ')} with a number (of pass-rate a share from 0 to 1) or off: max=5e-4,slope=off; or off alone.`,
      });
    }
    policy[key] = limit;
  }
  return { policy };
}
