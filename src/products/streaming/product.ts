import { type Product, verbOf } from '../../cli/command.js';

const verb = verbOf('Products');

/** Streaming models: contracts, recorded references, parity over a stream. */
export const streaming: Product = {
  name: 'streaming',
  errors: ['TF_PARITY_MISFIT', 'TF_PARITY_SUMMARY_INVALID', 'TF_CONTRACT_BROKEN'],
  families: { stream: 'streaming models: record a reference, verify engines against it, check contracts' },
  verbs: [
    verb(
      'stream verify',
      'compare an engine or a model with a recorded stream, chunk by chunk',
      () => import('./commands/verify.js'),
    ),
    verb(
      'stream check',
      'check names, types, shapes, lengths and states against a contract; runs nothing',
      () => import('./commands/check.js'),
    ),
    verb(
      'stream record',
      'record a reference: seeded inputs, outputs and states of a stream',
      () => import('./commands/record.js'),
    ),
    verb('stream draft', 'draft the contract of a model from its names', () => import('./commands/draft.js')),
  ],
  files: {
    contract: async () => (await import('../../formats/contract/contract.js')).contractSchema,
  },
  foreignFlags: async () => (await import('./script-flags.js')).scriptFlags,
  reports: async () => [(await import('./report/page.js')).parityReport],
  profileSources: async () => [(await import('./profile-source.js')).contractProfiles],
  knownIssues: async () => (await import('./known-issues.js')).streamingIssues,
};
