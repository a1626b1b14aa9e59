import { publishFile } from '../../base/files/publish.js';
import { assertUnedited } from '../../base/files/user-files.js';
import { plural } from '../../base/text/quantity.js';
import { type DraftedPolicy, draftPolicy } from '../../quality/gate/draft-policy.js';
import { defineCommand } from '../command.js';
import { text } from '../option.js';

export const command = defineCommand({
  arguments: [
    { name: 'RESULTS', describe: 'what commands wrote with --json: FILE, or NAME=FILE', many: true },
  ],
  examples: ['trtforge gate init parity.json bench.json -o gate.yaml'],
  options: {
    output: text({
      flags: '-o, --output <file>',
      describe: 'write the policy there (default: print it)',
      writes: true,
    }),
  },
  schema: async () => (await import('../../quality/gate/draft-policy.js')).draftedPolicySchema,
  run: async (results, { output }): Promise<DraftedPolicy> => {
    const drafted = draftPolicy(results);
    if (output === undefined) return drafted;
    assertUnedited(output, drafted.policy);
    publishFile(output, drafted.policy);
    return { ...drafted, output };
  },
  render: ({ policy, output, checks, results }: DraftedPolicy, { line }) => {
    if (output === null) for (const each of policy.trimEnd().split('\n')) line(each);
    else line(`${output} has ${plural(checks, 'check')} over ${results.join(', ')}.`);
  },
});
