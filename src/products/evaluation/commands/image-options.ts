import type { OptionValues } from '../../../base/options/option.js';
import { choice } from '../../../cli/option.js';
import { placeOptions } from '../../../cli/options/comparison.js';
import { loadOptions } from '../../../engines/runtime/tensorrt/options.js';
import { preprocessings } from '../../../formats/images/preprocess.js';
import { imageRequestOptions, imageRunOptions } from '../options.js';
import { preparationOf } from '../run/candidate.js';

/** The options of every verb that runs one network over images. */
export const imageOptions = {
  imagesDir: imageRequestOptions.imagesDir,
  ...imageRunOptions,
  ...placeOptions,
  ...loadOptions,
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
    preprocess,
    imgsz: options.imgsz ?? preprocessings[preprocess]!.width,
    open: options,
  };
}
