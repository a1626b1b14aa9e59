import { valuesOf } from '../../../base/options/option.js';
import { choice, type OptionValues, text } from '../../../cli/option.js';
import { placeOptions } from '../../../cli/options/comparison.js';
import { loadOptions } from '../../../engines/runtime/tensorrt/engine-options.js';
import { preprocessings } from '../../../formats/images/preprocess.js';
import { imageRunOptions } from '../options.js';

export const imagesFolder = {
  flags: '--images <folder>',
  describe: 'the folder of the images, JPEG, PNG or WebP',
} as const;

/** What every verb takes that runs one network over images. */
export const imageOptions = {
  images: text({ ...imagesFolder, required: '--images FOLDER' }),
  ...imageRunOptions,
  ...placeOptions,
  ...loadOptions,
};

export const preprocessSpec = <const I extends readonly string[]>(ids: I) => ({
  flags: '--preprocess <name>',
  describe: `how images are prepared: ${ids.map((id) => `${id} (${preprocessings[id]!.summary})`).join(' · ')}`,
  choices: ids,
});

export const preprocessOption = (ids: readonly string[], first: string) =>
  choice({ ...preprocessSpec(ids), default: first });

/** The options as the rooms take them that run images. */
export const imageRunOf = (options: OptionValues<typeof imageOptions> & { readonly preprocess: string }) => ({
  imagesDir: options.images,
  preprocess: options.preprocess,
  imgsz: options.imgsz ?? preprocessings[options.preprocess]!.width,
  warmupRuns: options.warmupRuns,
  skipLatency: options.skipLatency,
  open: { ...valuesOf(loadOptions, options), ...valuesOf(placeOptions, options) },
});
