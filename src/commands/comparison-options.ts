import { type OptionValues, option } from '../cli/option.js';
import { integer, parseNamedFile, parseTolerance, parseValueRange, splitAtCommas } from '../cli/values.js';
import type { VerifyRequest } from '../verify/request.js';

const tolerances = (list: string) => splitAtCommas(list).map(parseTolerance);

/** What an element may be off. */
export const toleranceOptions = {
  atol: option({
    flags: '--atol <tolerances>',
    describe: 'absolute tolerance, 1e-3 for all outputs or out:1e-3 for one; several by comma',
    parse: tolerances,
    repeat: true,
  }),
  rtol: option({
    flags: '--rtol <tolerances>',
    describe: 'relative tolerance, likewise; an element may be off by atol + rtol * |reference|',
    parse: tolerances,
    repeat: true,
  }),
};

/** What random inputs are drawn with, everywhere. */
export const seedOption = option({
  flags: '--seed <number>',
  describe: 'of the random inputs',
  parse: integer(0),
  default: 0,
});

/** What a comparison draws its inputs from, and what it allows; for commands that compare. */
export const comparisonOptions = {
  seed: seedOption,
  samples: option({
    flags: '--samples <count>',
    describe: 'how many sets of inputs',
    parse: integer(1, 10_000),
    default: 3,
    aliases: ['--iterations'],
  }),
  valRange: option({
    flags: '--val-range <range>',
    describe:
      'values to draw from, [0,1] for all inputs or x:[0,1] for one; overrules what the graph suggests',
    parse: parseValueRange,
    repeat: true,
  }),
  inputs: option({
    flags: '--inputs <name=@file>',
    describe: 'an npy file to take for an input',
    parse: parseNamedFile,
    repeat: true,
  }),
  ...toleranceOptions,
  threads: option({
    flags: '--threads <count>',
    describe: 'threads of ONNX Runtime (default: one a core)',
    parse: integer(1, 1024),
  }),
};

type ComparisonOptionValues = OptionValues<typeof comparisonOptions>;

/** The options as the verify room takes them. */
export function comparisonWishes(
  options: ComparisonOptionValues,
): Pick<VerifyRequest, 'seed' | 'samples' | 'ranges' | 'files' | 'atol' | 'rtol' | 'threads'> {
  const { seed, samples, valRange, inputs, atol, rtol, threads } = options;
  return {
    seed,
    samples,
    ranges: valRange,
    files: inputs,
    atol: atol.flat(),
    rtol: rtol.flat(),
    ...(threads === undefined ? {} : { threads }),
  };
}
