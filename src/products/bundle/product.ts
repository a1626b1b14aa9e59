import type { Product } from '../../cli/command.js';

/** Models that are deployed together, described by a model_meta.json. */
export const bundle: Product = {
  name: 'bundle',
  families: { bundle: 'models that are deployed together: encoder, predictor, joint network' },
  verbs: [
    {
      path: 'bundle build',
      group: 'Products',
      summary: 'build the engines of a bundle',
      load: async () => (await import('./commands/build.js')).command,
    },
    {
      path: 'bundle forge',
      group: 'Products',
      summary: 'build the engines of a bundle, run them, and check them as the chain they are',
      load: async () => (await import('./commands/forge.js')).command,
    },
  ],
  foreignFlags: async () => (await import('./script-flags.js')).scriptFlags,
  tasks: async () => [(await import('./token-task.js')).taskKind],
  recognisers: async () => [(await import('./recogniser.js')).recogniser],
  bundleParts: async () => (await import('./bundle-parts.js')).bundleParts,
  reports: async () => [(await import('./report/page.js')).bundleReport],
};
