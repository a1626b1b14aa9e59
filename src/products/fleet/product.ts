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
      path: 'fleet submit',
      group: 'Products',
      summary:
        'send missing engines to Slurm, Kubernetes, ssh or this machine, each target where it is built',
      load: async () => (await import('./commands/submit.js')).command,
    },
    {
      path: 'fleet work',
      group: 'Products',
      summary: 'what a task of a cluster runs: build, prove and keep engines of a plan',
      load: async () => (await import('./commands/work.js')).command,
    },
    {
      path: 'fleet status',
      group: 'Products',
      summary:
        'how every engine of a fleet stands, by its store and the schedulers; exits 4 until all are there',
      load: async () => (await import('./commands/status.js')).command,
    },
    {
      path: 'fleet report',
      group: 'Products',
      summary: 'the same as one page: models by targets, with time, size and verdict',
      load: async () => (await import('./commands/report.js')).command,
    },
    {
      path: 'fleet rehearse',
      group: 'Products',
      summary:
        'an upgrade of TensorRT tried on every engine: built, verified, measured in turns, go or no-go',
      load: async () => (await import('./commands/rehearse.js')).command,
    },
    {
      path: 'which',
      group: 'Products',
      summary: 'which stored engine each machine of a list loads, why another does not, and what to build',
      load: async () => (await import('./commands/which.js')).command,
    },
  ],
  files: {
    'fleet-record': async () => (await import('./plan-schema.js')).workRecordSchema,
  },
  reports: async () => [
    (await import('./page.js')).fleetReport,
    (await import('./rehearsal-page.js')).rehearsalReport,
  ],
};
