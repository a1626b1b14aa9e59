import { textNormalizers } from '../../quality/tasks/scorer.js';
import { choice, text } from '../option.js';

/** The data that models are scored on by the metric of a task. */
export const imagesFolder = {
  flags: '--images <folder>',
  describe: 'the folder of the images, JPEG, PNG or WebP',
} as const;

export const normalizerOption = choice({
  flags: '--normalizer <name>',
  describe: `how texts are made comparable: ${Object.entries(textNormalizers)
    .map(([id, summary]) => `${id} (${summary})`)
    .join(' · ')}`,
  choices: Object.keys(textNormalizers),
  default: 'none',
});

/** Options that decide words besides the models and their data. */
export const speechOptions = {
  audioDir: text({
    flags: '--audio-dir <folder>',
    describe: "where relative wav_path begin (default: the manifest's folder)",
  }),
  normalizer: normalizerOption,
};
