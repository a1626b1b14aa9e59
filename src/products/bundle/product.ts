import type { FormerSpelling, Product } from '../../cli/command.js';
import { type ForeignFlag, rowsOf } from '../../cli/foreign/flag.js';
import { renamed, when } from '../../cli/former-spellings.js';

const { valued } = rowsOf('trtforge');
const ends = ['min', 'opt', 'max'];
const sizes = ['encoder-t', 'predictor-u', 'joint-t', 'joint-u'].flatMap((size) => {
  const [component, axis = ''] = size.split('-');
  return ends.flatMap((end) => [axis, axis.toUpperCase()].map((name) => `--${component}-${end}-${name}`));
});

/** Sizes of a bundle's components in the releases before profiles came from a file. */
const formerFlags: readonly ForeignFlag[] = [
  ...valued(sizes.join(' '), null, 'ranges of components stand in a YAML file: --profiles FILE'),
  ...valued(
    ends.map((end) => `--${end}-batch`).join(' '),
    null,
    'one option has all three: --batch MIN/OPT/MAX',
  ),
];

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
