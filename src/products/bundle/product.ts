import type { FormerSpelling, Product } from '../../cli/command.js';
import { renamed, when } from '../../cli/former-spellings.js';
import { formerFlags } from './former-flags.js';

/** `build --meta M` and `forge --meta M` of earlier releases. */
const withMeta = (command: 'build' | 'forge'): FormerSpelling => ({
  was: `${command} --meta`,
  now: when(command, '--meta', (args) => [
    'bundle',
    command,
    args.value('--meta') ?? 'META',
    ...renamed(args.without('--meta', true).list, '--run-root', '--outdir'),
  ]),
});

/** Models that are deployed together, described by a model_meta.json. */
export const bundle: Product = {
  name: 'bundle',
  families: { bundle: 'models that are deployed together: encoder, predictor, joint network' },
  verbs: [
    {
      path: 'bundle build',
      group: 'Products',
      summary: 'build the engines of a bundle',
      result: 'bundle',
      schema: async () => (await import('./report-schema.js')).bundleReportSchema,
      load: async () => (await import('./commands/build.js')).command,
    },
    {
      path: 'bundle forge',
      group: 'Products',
      summary: 'build the engines of a bundle, run them, and check them as the chain they are',
      result: 'bundle',
      schema: async () => (await import('./report-schema.js')).bundleReportSchema,
      load: async () => (await import('./commands/forge.js')).command,
    },
  ],
  foreignFlags: formerFlags,
  formerly: [withMeta('build'), withMeta('forge')],
  tasks: async () => [(await import('./token-task.js')).taskKind],
  reports: async () => [(await import('./report/kind.js')).bundleReport],
};
