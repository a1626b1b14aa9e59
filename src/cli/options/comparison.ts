import { type OptionsOf, type OptionValues, valuesOf } from '../../base/options/option.js';
import { placeOptions as place } from '../../engines/runtime/back-end.js';
import { providers } from '../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../errors.js';
import { preparationOptions } from '../../formats/images/preprocess.js';
import { judgingSampleOptions } from '../../formats/precision/options.js';
import { judgingOptions, type VerifyRequest, verifyOptions } from '../../quality/verify/options.js';
import { toleranceOptions } from '../../quality/verify/tolerance.js';
import { text } from '../option.js';

/** The page of a comparison of outputs. */
export const errorReportOption = text({
  flags: '--report <file>',
  describe: 'also write an HTML page with the errors, and where in the worst output they are',
  writes: ['an HTML page'],
});

/** Where a model or an engine runs; the back ends state their names. */
export const placeOptions = { ...place, provider: { ...place.provider, choices: providers } };

/** Throws TF_USAGE for a size of images where none can be among the samples. */
export function assertImages(imgsz: number | undefined, ...samples: readonly (readonly string[])[]): void {
  if (imgsz === undefined || samples.flat().some((file) => !/\.(npz|npy|wav|jsonl)$|^random$/i.test(file)))
    return;
  throw new TrtforgeError('TF_USAGE', `--imgsz ${imgsz} has no effect: there are no images.`, {
    remedy: 'Pass images as samples, or remove --imgsz.',
    details: { option: '--imgsz' },
  });
}

const { seed, samples, ranges, threads } = judgingOptions;

/** Options of a comparison's inputs, and of its limits; for commands that compare. */
export const comparisonOptions = {
  ...{ seed, samples, ranges },
  inputs: judgingSampleOptions.files,
  ...preparationOptions,
  ...toleranceOptions,
  threads,
};

type ComparisonOptionValues = OptionValues<typeof comparisonOptions>;

/** A comparison of a candidate with its reference, for verbs that have `--against`, `--precision`, shapes and a place. */
export const verifyRequestOf = (
  candidate: string,
  options: ComparisonOptionValues & Partial<VerifyRequest> & { readonly against: string },
): VerifyRequest => {
  assertImages(options.imgsz, options.inputs);
  return {
    ...valuesOf(verifyOptions, options),
    candidate,
    reference: options.against,
    data: dataOf(options),
  };
};

/** The options as the verify room takes them. */
export const comparisonOptionsOf = (
  options: ComparisonOptionValues & Pick<VerifyRequest, 'shapes'>,
): OptionsOf<typeof judgingOptions> => ({ ...valuesOf(judgingOptions, options), data: dataOf(options) });

const dataOf = ({ inputs, preprocess, imgsz }: ComparisonOptionValues) =>
  inputs.length === 0 ? undefined : { files: inputs, preprocess, imgsz };
