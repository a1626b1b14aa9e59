import { choice, option, text } from '../../../cli/option.js';
import { integer } from '../../../cli/values.js';
import { preprocessings } from '../../../formats/images/preprocess.js';

/** What every verb takes that runs a network over images. */
export const imageOptions = {
  images: text({
    flags: '--images <folder>',
    describe: 'the folder of the images, JPEG, PNG or WebP',
    required: '--images FOLDER',
  }),
  imgsz: option({
    flags: '--imgsz <pixels>',
    describe: 'width and height where the model leaves them open (default: those of --preprocess)',
    parse: integer(16, 8192),
  }),
  warmupRuns: option({
    flags: '--warmup-runs <n>',
    describe: 'untimed runs of the first image before the others',
    parse: integer(0, 10_000),
    default: 1,
  }),
};

export const preprocessOption = (ids: readonly string[], first: string) =>
  choice({
    flags: '--preprocess <name>',
    describe: `how images are prepared: ${ids.map((id) => `${id} (${preprocessings[id]!.summary})`).join(' · ')}`,
    choices: ids,
    default: first,
  });

/** The size where the model leaves it open. */
export const sizeOf = (imgsz: number | undefined, preprocess: string): number =>
  imgsz ?? preprocessings[preprocess]!.width;
