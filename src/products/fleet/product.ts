import { type Product, verbOf } from '../../cli/command.js';

const verb = verbOf('Products');

/** Engines for many GPUs and many TensorRT versions, built where those are. */
export const fleet: Product = {
  name: 'fleet',
  errors: [
    'TF_FLEET_INVALID',
    'TF_FLEET_CHANGED',
    'TF_FLEET_REFUSED',
    'TF_FLEET_UNDECIDED',
    'TF_SCHEDULER_FAILED',
    'TF_INVENTORY_INVALID',
  ],
  families: { fleet: 'engines for many GPUs and TensorRT versions, built where those are' },
  verbs: [
    verb(
      'fleet plan',
      'which engines of an engines.yaml its store has, which are missing, and why; builds nothing',
      () => import('./commands/plan.js'),
    ),
    verb(
      'fleet submit',
      'send missing engines to Slurm, Kubernetes, ssh or this machine, each target where it is built',
      () => import('./commands/submit.js'),
    ),
    verb(
      'fleet work',
      'what a task of a cluster runs: build, prove and keep engines of a plan',
      () => import('./commands/work.js'),
    ),
    verb(
      'fleet status',
      'how every engine of a fleet stands, by its store and the schedulers; exits 4 until all are there',
      () => import('./commands/status.js'),
    ),
    verb(
      'fleet report',
      'the same as one page: models by targets, with time, size and verdict',
      () => import('./commands/report.js'),
    ),
    verb(
      'fleet rehearse',
      'an upgrade of TensorRT tried on every engine: built, verified, measured in turns, go or no-go',
      () => import('./commands/rehearse.js'),
    ),
    verb(
      'which',
      'which stored engine each machine of a list loads, why another does not, and what to build',
      () => import('./commands/which.js'),
    ),
  ],
  files: {
    'fleet-record': async () => (await import('./plan-schema.js')).workRecordSchema,
  },
  reports: async () => [
    (await import('./page.js')).fleetReport,
    (await import('./rehearsal-page.js')).rehearsalReport,
  ],
};
