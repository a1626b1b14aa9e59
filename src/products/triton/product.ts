import type { Product } from '../../cli/command.js';

/** Model repositories of Triton's inference server. */
export const triton: Product = {
  name: 'triton',
  families: { triton: "model repositories of Triton's inference server" },
  verbs: [
    {
      path: 'triton try',
      group: 'Products',
      summary: "let Triton's server serve a repository: ready, warm-up, a request, states, known answer",
      load: async () => (await import('./commands/try.js')).command,
    },
  ],
  runRootSections: async () => (await import('./report.js')).tritonSections,
};
