import { z } from 'zod';
import { TrtforgeError } from '../../errors.js';

/** A text of a user's file as an option's parser reads it; what that throws is the fault of the place. */
export const parsed =
  <T>(parse: (text: string) => T) =>
  (text: string, { issues }: z.RefinementCtx<string>): T => {
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof TrtforgeError)) throw error;
      issues.push({ code: 'custom', message: `${error.message} ${error.remedy}`, input: text });
      return z.NEVER;
    }
  };
