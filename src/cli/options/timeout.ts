import * as is from '../../base/options/kinds.js';
import { TrtforgeError } from '../../errors.js';
import type { CommandContext } from '../command.js';
import { option } from '../option.js';

export const timeoutOption = {
  timeout: option({
    flags: '--timeout <s>',
    describe: 'end the command and its processes after this many seconds (default: no limit)',
    advanced: true,
    parse: is.decimal(0.001, 2_000_000).parse,
  }),
};

type Run<Inputs, Options, T> = (inputs: Inputs, options: Options, context: CommandContext) => Promise<T>;

/** A command's `run` that `--timeout` can end. */
export const limited =
  <Inputs, Options extends { readonly timeout: number | undefined }, T>(
    run: Run<Inputs, Options, T>,
  ): Run<Inputs, Options, T> =>
  (inputs, options, context) =>
    withinTime(options.timeout, context, (inner) => run(inputs, options, inner));

/** Does a command's work, and ends it when it takes longer. Errors: TF_TIMEOUT, with the last lines of what was running where it has them. */
export async function withinTime<T>(
  seconds: number | undefined,
  context: CommandContext,
  work: (context: CommandContext) => Promise<T>,
): Promise<T> {
  if (seconds === undefined) return work(context);
  const limit = AbortSignal.timeout(seconds * 1000);
  try {
    return await work({ ...context, signal: AbortSignal.any([context.signal, limit]) });
  } catch (error) {
    const isLate = error instanceof TrtforgeError && error.code === 'TF_CANCELLED' && limit.aborted;
    throw isLate ? timedOut(seconds, error) : error;
  }
}

function timedOut(seconds: number, error: TrtforgeError): TrtforgeError {
  const { lastLines, log } = error.details ?? {};
  const where = typeof log === 'string' ? ` Its log is ${log}.` : '';
  const tail =
    Array.isArray(lastLines) && lastLines.length > 0 ? ` Its last lines:\n${lastLines.join('\n')}` : '';
  return new TrtforgeError('TF_TIMEOUT', `Not finished after ${seconds} s. ${error.message}${where}${tail}`, {
    details: { ...error.details, seconds },
    cause: error,
  });
}
