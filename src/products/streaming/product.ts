import type { Product } from '../../cli/command.js';

/** Streaming models: contracts, recorded references, parity over a stream. */
export const streaming: Product = {
  name: 'streaming',
  families: { stream: 'streaming models: record a reference, verify engines against it, check contracts' },
  verbs: [
    {
      path: 'stream verify',
      group: 'Products',
      summary: 'compare an engine or a model with a recorded stream, chunk by chunk',
      load: async () => (await import('./commands/verify.js')).command,
    },
    {
      path: 'stream check',
      group: 'Products',
      summary: 'check names, types, shapes, lengths and states against a contract; runs nothing',
      load: async () => (await import('./commands/check.js')).command,
    },
    {
      path: 'stream record',
      group: 'Products',
      summary: 'record a reference: seeded inputs, outputs and states of a stream',
      load: async () => (await import('./commands/record.js')).command,
    },
    {
      path: 'stream draft',
      group: 'Products',
      summary: 'draft the contract of a model from its names',
      load: async () => (await import('./commands/draft.js')).command,
    },
  ],
  files: {
    contract: async () => (await import('../../formats/contract/contract.js')).contractSchema,
  },
  foreignFlags: async () => (await import('./script-flags.js')).scriptFlags,
  reports: async () => [(await import('./report/page.js')).parityReport],
  profileSources: async () => [(await import('./profile-source.js')).contractProfiles],
  knownIssues: async () => (await import('./known-issues.js')).streamingIssues,
};
