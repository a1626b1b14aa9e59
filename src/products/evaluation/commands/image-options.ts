import { choice, type OptionValues, option, text } from '../../../cli/option.js';
import { placeOf, placeOptions } from '../../../cli/options/comparison.js';
import { engineOptions, engineOptionsOf } from '../../../cli/options/engine.js';
import { numberNamed } from '../../../cli/values.js';
import { preprocessings } from '../../../formats/images/preprocess.js';
import { preparationOf } from '../run/candidate.js';

export const imagesFolder = {
  flags: '--images <folder>',
  describe: 'the folder of the images, JPEG, PNG or WebP',
} as const;

/** How networks are run over images. */
export const imageRunOptions = {
  imgsz: option({
    flags: '--imgsz <pixels>',
    describe: 'width and height where the model leaves them open (default: those of --preprocess)',
    parse: numberNamed('imgsz'),
  }),
  warmupRuns: option({
    flags: '--warmup-runs <n>',
    describe: 'untimed runs of the first image before the others',
    parse: numberNamed('warmupRuns'),
    default: 1,
  }),
  skipLatency: option({
    flags: '--skip-latency <n>',
    describe: 'leave so many of the first times out of the latency',
    parse: numberNamed('skipLatency'),
    default: 0,
  }),
};

/** What every verb takes that runs one network over images. */
export const imageOptions = {
  images: text({ ...imagesFolder, required: '--images FOLDER' }),
  ...imageRunOptions,
  ...placeOptions,
  ...engineOptions,
};

export const preprocessSpec = <const I extends readonly string[]>(ids: I) => ({
  flags: '--preprocess <name>',
  describe: `how images are prepared: ${ids.map((id) => `${id} (${preprocessings[id]!.summary})`).join(' · ')}`,
  choices: ids,
});

/** The first is the default of what has no passport. */
export const preprocessOption = (ids: readonly string[]) => {
  const { describe, ...spec } = preprocessSpec(ids);
  return choice({
    ...spec,
    describe: `${describe} (default: as the engine's passport states, else ${ids[0]})`,
  });
};

/** The options as the rooms take them that run images through this engine or model. */
export function imageRunOf(
  file: string,
  options: OptionValues<typeof imageOptions> & { readonly preprocess?: string | undefined },
  { choices = [] }: ReturnType<typeof preprocessOption>,
) {
  const preprocess = preparationOf(options.preprocess, [file], choices);
  return {
    imagesDir: options.images,
    preprocess,
    imgsz: options.imgsz ?? preprocessings[preprocess]!.width,
    warmupRuns: options.warmupRuns,
    skipLatency: options.skipLatency,
    open: { ...engineOptionsOf(options), ...placeOf(options) },
  };
}
