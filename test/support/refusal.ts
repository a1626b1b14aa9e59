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
