/** What the user is to change: its message is printed, without a stack. */
export class UsageError extends Error {}

/** Runs an example's command; wrong arguments end it with exit code 2, their message and `usage`. */
export async function runExample(main: () => Promise<void>, usage = ''): Promise<void> {
  try {
    await main();
  } catch (error) {
    const isExpected =
      error instanceof UsageError ||
      (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
    if (!isExpected) throw error;
    process.stderr.write(
      `${[error.message, usage]
        .filter((part) => part !== '')
        .join('\n\n')
        .trimEnd()}\n`,
    );
    process.exitCode = 2;
  }
}
