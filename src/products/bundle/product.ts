import { type Product, verbOf } from '../../cli/command.js';

const verb = verbOf('Products');

/** Models that are deployed together, described by a model_meta.json. */
export const bundle: Product = {
  name: 'bundle',
  errors: [
    'TF_BUNDLE_COMPONENT_MISSING',
    'TF_BUNDLE_MISMATCH',
    'TF_BUNDLE_PROFILES_INVALID',
    'TF_ENGINE_TOO_SMALL',
  ],
  families: { bundle: 'models that are deployed together: encoder, predictor, joint network' },
  verbs: [
    verb('bundle build', 'build the engines of a bundle', () => import('./commands/build.js')),
    verb(
      'bundle forge',
      'build the engines of a bundle, run them, and check them as the chain they are',
      () => import('./commands/forge.js'),
    ),
  ],
  foreignFlags: async () => (await import('./script-flags.js')).scriptFlags,
  tasks: async () => [(await import('./token-task.js')).taskKind],
  recognisers: async () => [(await import('./recogniser.js')).recogniser],
  bundleParts: async () => (await import('./bundle-parts.js')).bundleParts,
  reports: async () => [(await import('./report/page.js')).bundleReport],
};
