import type { Product } from '../../cli/command.js';

/** Engines for many machines. */
export const fleet: Product = {
  name: 'fleet',
  verbs: [
    {
      path: 'which',
      group: 'Products',
      summary: 'which stored engine each machine of a list loads, why another does not, and what to build',
      load: async () => (await import('./commands/which.js')).command,
    },
  ],
};
