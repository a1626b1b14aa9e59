import { type Product, verbOf } from '../../cli/command.js';

const engines = verbOf('Engines');

/** Changes of an ONNX graph, each proven against the original. */
export const edit: Product = {
  name: 'edit',
  foreignFlags: async () => (await import('./peer-flags.js')).peerFlags,
  errors: ['TF_EDIT_UNKNOWN', 'TF_EDIT_IMPOSSIBLE'],
  verbs: [
    engines(
      'edit',
      'change an ONNX graph and prove the result: fold, fix sizes, cut, rename, other opset',
      () => import('./commands/edit.js'),
    ),
  ],
};
