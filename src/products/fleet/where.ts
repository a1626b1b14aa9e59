import { z } from 'zod';

/** Where a target is built: its scheduler and what that is asked for. */
export const whereSchema = z.literal('local');
