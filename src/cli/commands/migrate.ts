import { z } from 'zod';
import { defineCommand } from '../command.js';

export const migrationSchema = z.object({ schema: z.literal('trtforge.migrate/1') });

export const command = defineCommand({
  arguments: [{ name: 'LINE', describe: 'a command line of trtexec or Polygraphy', many: true }],
  options: {},
  run: async () => ({ schema: 'trtforge.migrate/1' }),
  render: () => {},
});
