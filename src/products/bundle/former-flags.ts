import { type ForeignFlag, moved, rowsOf } from '../../cli/foreign/flag.js';

const { valued } = rowsOf('trtforge');
const ends = ['min', 'opt', 'max'];
const sizes = ['encoder-t', 'predictor-u', 'joint-t', 'joint-u'].flatMap((size) => {
  const [component, axis = ''] = size.split('-');
  return ends.flatMap((end) => [axis, axis.toUpperCase()].map((name) => `--${component}-${end}-${name}`));
});

/** Bundles were built by `build` and `forge`, and sizes of components were options before profiles came from a file. */
export const formerFlags: readonly ForeignFlag[] = [
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
