import { valuesOf } from '../../base/options/option.js';
import { parseTolerance, parseValueRange, splitAtCommas } from '../../base/options/readers.js';
import { providers } from '../../engines/runtime/open-session.js';
import { placeOptions as place } from '../../engines/runtime/place-options.js';
import { preprocessings } from '../../formats/images/preprocess.js';
import { MIN_AGREEMENT } from '../../quality/tasks/decisions.js';
import type { VerifyRequest } from '../../quality/verify/request.js';
import { verifyPrecisions } from '../../quality/verify/result.js';
import { choice, type OptionValues, option, text } from '../option.js';
import { numberNamed } from '../values.js';
import { shapesOf } from './shapes.js';

const tolerances = (list: string) => splitAtCommas(list).map(parseTolerance);

/** What an element may be off. */
export const toleranceOptions = {
  atol: option({
    flags: '--atol <tolerances>',
    group: 'Tolerances',
    describe: 'absolute tolerance, 1e-3 for all outputs of floats or out:1e-3 for one; several by comma',
    parse: tolerances,
    repeat: true,
  }),
  rtol: option({
    flags: '--rtol <tolerances>',
    group: 'Tolerances',
    describe: 'relative tolerance, likewise; an element may be off by atol + rtol * |reference|',
    parse: tolerances,
    repeat: true,
  }),
};

/** The page of a comparison of outputs. */
export const errorReportOption = text({
  flags: '--report <file>',
  describe: 'also write an HTML page with the errors, and where in the worst output they are',
  writes: ['an HTML page'],
});

/** Whose usual limits decide. */
export const precisionOption = choice({
  flags: '--precision <type>',
  describe: 'whose tolerances to use (default: the lowest precision in the candidate)',
  choices: verifyPrecisions,
});

/** Where a model or an engine runs; the back ends state their names. */
export const placeOptions = { ...place, provider: { ...place.provider, choices: providers } };

/** What random inputs are drawn with by commands that always draw them. */
export const seedOption = option({
  flags: '--seed <number>',
  group: 'Inputs',
  describe: 'seed of the random inputs',
  parse: numberNamed('seed'),
  default: 0,
});

/** What samples are read from. */
export const sampleFiles =
  'npz, npy, NAME=@FILE.npy, images, WAV, a recorded stream, a folder or a list (.txt) of them';

/** How samples that are images become inputs. */
export const preparationOptions = {
  preprocess: choice({
    flags: '--preprocess <name>',
    group: 'Inputs',
    describe: 'how images among the samples are prepared, as in evaluations',
    choices: Object.keys(preprocessings),
  }),
  imgsz: option({
    flags: '--imgsz <pixels>',
    group: 'Inputs',
    describe: 'width and height of images where the model leaves them open (default: that of --preprocess)',
    parse: numberNamed('imgsz'),
  }),
};

/** What a comparison draws its inputs from, and what it allows; for commands that compare. */
export const comparisonOptions = {
  seed: option({
    flags: '--seed <number>',
    group: 'Inputs',
    describe: 'seed of the random inputs (default: 0)',
    parse: numberNamed('seed'),
  }),
  samples: option({
    flags: '--samples <count>',
    group: 'Inputs',
    describe:
      'how many samples: the first of the data (default: 32 at most), or drawn ones (default: 3, more where they do not decide)',
    parse: numberNamed('samples'),
  }),
  valRange: option({
    flags: '--val-range <range>',
    group: 'Inputs',
    advanced: true,
    describe: 'range of random inputs: [0,1] for all or x:[0,1] for one (default: from the graph)',
    parse: parseValueRange,
    repeat: true,
  }),
  inputs: text({
    flags: '--inputs <file>',
    group: 'Inputs',
    describe: `samples to compare on (default: drawn): ${sampleFiles}; inputs that they lack are drawn`,
    repeat: true,
  }),
  ...preparationOptions,
  ...toleranceOptions,
  threads: option({
    flags: '--threads <count>',
    advanced: true,
    describe: 'threads of ONNX Runtime (default: one a core)',
    parse: numberNamed('threads'),
  }),
};

type ComparisonOptionValues = OptionValues<typeof comparisonOptions>;

/** A comparison of a candidate with its reference, for verbs that have `--against`, `--precision`, shapes and a place. */
export const verifyRequestOf = (
  candidate: string,
  options: ComparisonOptionValues &
    OptionValues<typeof placeOptions> &
    Pick<VerifyRequest, 'precision'> & {
      readonly against: string;
      readonly shapes: Parameters<typeof shapesOf>[0];
    },
): VerifyRequest => ({
  candidate,
  reference: options.against,
  shapes: shapesOf(options.shapes),
  ...comparisonOptionsOf(options),
  precision: options.precision,
  ...valuesOf(placeOptions, options),
});

/** The options as the verify room takes them. */
export function comparisonOptionsOf(
  options: ComparisonOptionValues,
): Pick<VerifyRequest, 'ranges' | 'data' | 'seed' | 'samples' | 'atol' | 'rtol' | 'threads'> {
  const { seed, samples, valRange, inputs, preprocess, imgsz, atol, rtol, threads } = options;
  return {
    seed,
    samples,
    ranges: valRange,
    data: inputs.length === 0 ? undefined : { files: inputs, preprocess, imgsz },
    atol: atol.flat(),
    rtol: rtol.flat(),
    threads,
  };
}

/** How much of what is decoded or classified must be the same. */
export const minAgreementOption = option({
  flags: '--min-agreement <share>',
  group: 'Tolerances',
  advanced: true,
  describe:
    'share of tokens, durations or classes that must be the same; below it nothing is decided, and below 0.95 it fails',
  parse: numberNamed('minAgreement'),
  default: MIN_AGREEMENT,
});
