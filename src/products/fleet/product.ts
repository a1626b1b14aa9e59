import type { Product } from '../../cli/command.js';

/** Engines for many GPUs and many TensorRT versions, built where those are. */
export const fleet: Product = {
  name: 'fleet',
  families: { fleet: 'engines for many GPUs and TensorRT versions, built where those are' },
  verbs: [
    {
      path: 'fleet plan',
      group: 'Products',
      summary: 'which engines of an engines.yaml its store has, which are missing, and why; builds nothing',
      load: async () => (await import('./commands/plan.js')).command,
    },
    {
      path: 'fleet work',
      group: 'Products',
      summary: 'what a task of a cluster runs: build, prove and keep engines of a plan',
      load: async () => (await import('./commands/work.js')).command,
    },
  ],
};
