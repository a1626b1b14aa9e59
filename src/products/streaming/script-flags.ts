import { type ForeignFlag, rowsOf } from '../../cli/foreign-flag.js';

const { bare, valued } = rowsOf('streaming script');

/** Flags of the scripts that recorded and checked a streaming encoder. */
export const scriptFlags: readonly ForeignFlag[] = [
  ...valued('--engine', '{value}', 'the engine is an argument', {
    verbs: ['stream verify', 'stream check', 'stream draft'],
  }),
  ...valued('--ref', '--reference {value}', 'the recorded stream'),
  ...valued('--dump-dir', '--dump {value}', 'failing chunks go there'),
  ...valued('--mode', '--mode closed-loop', 'modes are written with a hyphen', { only: 'closed_loop' }),
  ...valued('--num-chunks', '--chunks {value}', 'the same'),
  ...valued('--jsonl-out', '-o {value}', 'the recorded stream goes there', {
    verbs: ['stream record'],
  }),
  ...valued('--model', null, 'streams are recorded from an ONNX model: `trtforge stream record MODEL.onnx`', {
    verbs: ['stream record'],
  }),
  ...valued('--chunk-len', '--schedule {value}', 'every chunk has as many frames'),
  ...valued('--device', '', 'models run on the CPU in float32, and engines on the first GPU', {
    only: 'cuda',
    verbs: ['stream record', 'stream verify'],
  }),
  ...valued('--cache-size', null, "sizes of caches are the contract's: `trtforge stream draft MODEL`"),
  ...bare(
    '--skip-setup-streaming-params',
    '',
    'the model is exported: its streaming parameters are in the graph',
    { verbs: ['stream record'] },
  ),
];
