import { type ForeignFlag, rowsOf } from '../../cli/foreign/flag.js';

const { valued } = rowsOf('trtforge');
const ends = ['min', 'opt', 'max'];
const sizes = ['encoder-t', 'predictor-u', 'joint-t', 'joint-u'].flatMap((size) => {
  const [component, axis = ''] = size.split('-');
  return ends.flatMap((end) => [axis, axis.toUpperCase()].map((name) => `--${component}-${end}-${name}`));
});

/** Sizes of a bundle's components in the releases before profiles came from a file. */
export const formerFlags: readonly ForeignFlag[] = [
  ...valued(sizes.join(' '), null, 'ranges of components stand in a YAML file: --profiles FILE'),
  ...valued(
    ends.map((end) => `--${end}-batch`).join(' '),
    null,
    'one option has all three: --batch MIN/OPT/MAX',
  ),
];
