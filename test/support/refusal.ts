import { TrtforgeError } from '../../src/errors.js';

/** The TrtforgeError that an action ends with; anything else, success too, fails the test. */
export function refusal(action: () => unknown): TrtforgeError {
  try {
    action();
  } catch (error) {
    if (error instanceof TrtforgeError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

/** The code of the TrtforgeError that an action ends with, the text of another error, or "no error". */
export function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    return codeIn(error);
  }
  return 'no error';
}

/** The same of work that is awaited. */
export const codeOfWork = (work: Promise<unknown>): Promise<string> => work.then(() => 'no error', codeIn);

const codeIn = (error: unknown): string => (error instanceof TrtforgeError ? error.code : String(error));
