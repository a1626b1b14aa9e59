import { type ForeignFlag, rowsOf } from '../../cli/migrate/flag.js';

const { valued } = rowsOf('bundle script');
const ends = ['min', 'opt', 'max'];
const sizes = ['encoder-t', 'predictor-u', 'joint-t', 'joint-u'].flatMap((size) => {
  const [component, axis = ''] = size.split('-');
  return ends.flatMap((end) => [axis, axis.toUpperCase()].map((name) => `--${component}-${end}-${name}`));
});

/** Flags of the script that speech exporters ship, `build_trt.py`. What it has in common with trtexec, Polygraphy or trtforge has no row here. */
export const scriptFlags: readonly ForeignFlag[] = [
  ...valued('--meta', '{value}', 'the meta file is an argument', {
    verbs: ['bundle build', 'bundle forge'],
  }),
  ...valued('--workspace-mb', '--workspace {value}M', 'sizes have units'),
  ...valued(
    '--trtexec',
    null,
    'the environment variable TRTEXEC names the program, and --builder trtexec builds with it',
  ),
  ...valued(sizes.join(' '), null, 'ranges of components stand in a YAML file: --profiles FILE'),
  ...valued(
    ends.map((end) => `--${end}-batch`).join(' '),
    null,
    'one option has all three: --batch MIN/OPT/MAX',
  ),
];
