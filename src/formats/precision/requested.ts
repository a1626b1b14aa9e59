import { type Operation, operatorName } from './flow.js';
import type { ResolvedConversion } from './options.js';

/** The pattern that matches one name. */
export const exactly = (name: string): RegExp =>
  new RegExp(`^${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`);

/** The user's requests to leave nodes as they are: the first two rules of everything that decides on nodes. */
export const requestedRules = [
  {
    id: 'keep-node',
    title: 'Named by --keep-nodes',
    reason: 'Requested, by a regular expression that the node name matches.',
    decide: ({ node }: Operation, { options }: { readonly options: ResolvedConversion }) => {
      const pattern = options.keepNodes.find((regex) => regex.test(node.name));
      return pattern && `its name matches ${pattern}`;
    },
  },
  {
    id: 'keep-op',
    title: 'Named by --keep-ops',
    reason: 'Requested, by the operator type.',
    decide: (operation: Operation, { options }: { readonly options: ResolvedConversion }) =>
      options.keepOps.has(operatorName(operation))
        ? `--keep-ops names ${operatorName(operation)}`
        : undefined,
  },
] as const;
