import { type ForeignFlag, moved, rowsOf } from '../../cli/migrate/flag.js';

const script = rowsOf('bundle script');
const { valued } = rowsOf('trtforge');
const ends = ['min', 'opt', 'max'];
const sizes = ['encoder-t', 'predictor-u', 'joint-t', 'joint-u'].flatMap((size) => {
  const [component, axis = ''] = size.split('-');
  return ends.flatMap((end) => [axis, axis.toUpperCase()].map((name) => `--${component}-${end}-${name}`));
});

/** Flags of the script that speech exporters ship, `build_trt.py`. What it has in common with trtexec, Polygraphy or trtforge has no row here. */
const scriptFlags: readonly ForeignFlag[] = [
  ...script.valued('--meta', '{value}', 'the meta file is an argument', {
    verbs: ['bundle build', 'bundle forge'],
  }),
  ...script.valued('--workspace-mb', '--workspace {value}M', 'sizes have units'),
  ...script.valued(
    '--trtexec',
    null,
    'the environment variable TRTEXEC names the program, and --builder trtexec builds with it',
  ),
];

/** Bundles were built by `build` and `forge`, and sizes of components were options before profiles came from a file. */
export const formerFlags: readonly ForeignFlag[] = [
  ...scriptFlags,
  moved('build --meta', 'bundle build', '{value}'),
  moved('forge --meta', 'bundle forge', '{value}'),
  ...valued('--run-root', '--outdir {value}', 'one folder has engines, logs and the report', {
    verbs: ['bundle build', 'bundle forge'],
  }),
  ...valued(sizes.join(' '), null, 'ranges of components stand in a YAML file: --profiles FILE'),
  ...valued(
    ends.map((end) => `--${end}-batch`).join(' '),
    null,
    'one option has all three: --batch MIN/OPT/MAX',
  ),
];
