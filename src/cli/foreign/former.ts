import { type ForeignFlag, poolSettings, rowsOf } from './flag.js';

const { bare, valued } = rowsOf('trtforge');
const setting = (flag: string, key = flag) =>
  valued(
    `--${flag}`,
    `--builder-config ${key}={value}`,
    'settings of the builder are --builder-config KEY=VALUE',
  );

/** Options of trtforge's releases before this one. */
export const formerRows: readonly ForeignFlag[] = [
  ...valued('--min-shapes', '--minShapes {value}', 'spelled as trtexec has it'),
  ...valued('--opt-shapes', '--optShapes {value}', 'spelled as trtexec has it'),
  ...valued('--max-shapes', '--maxShapes {value}', 'spelled as trtexec has it'),
  ...setting('optimization-level'),
  ...setting('builder-flag', 'flags'),
  ...valued(
    '--memory-pool',
    '--builder-config {value}',
    'settings of the builder are --builder-config KEY=VALUE',
    {
      values: poolSettings(''),
    },
  ),
  ...setting('profiling-verbosity'),
  ...setting('hardware-compatibility'),
  ...setting('runtime-platform'),
  ...setting('max-aux-streams'),
  ...setting('avg-timing'),
  ...setting('tiling-optimization-level'),
  ...setting('max-tactics'),
  ...setting('l2-limit-for-tiling'),
  ...setting('tactic-source', 'tactic-sources'),
  ...setting('preview-feature', 'preview-features'),
  ...valued('--model-version', null, 'the version is part of the name: --name NAME:VERSION'),
  ...valued('--extension', null, 'the ending of -o FILE is the ending in the name'),
  ...valued('--layers-from', '--from {value}', 'layers are read by `engine layers` and `engine diff`'),
  ...valued('--against-mode', '--mode {value}', 'engines are compared by `bench compare`'),
  ...valued('--outdir', '--run-root {value}', 'the folder of a run is its root'),
  ...bare('--cuda-graph', '--graph', 'CUDA graphs are measured with --graph', {
    verbs: ['bench', 'bench compare'],
  }),
];
