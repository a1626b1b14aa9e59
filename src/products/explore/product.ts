import { type Product, verbOf } from '../../cli/command.js';

const engines = verbOf('Engines');

/** Layers of engines and models on one page. */
export const explore: Product = {
  name: 'explore',
  verbs: [
    engines(
      'explore',
      'layers of an engine or a model, or of two beside each other, as one page that opens offline',
      () => import('./commands/explore.js'),
    ),
  ],
};
