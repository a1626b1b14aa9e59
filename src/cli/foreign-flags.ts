import type { OptionTable } from './option.js';

/** The arguments with every flag of another tool under its own name. */
export function withOwnFlags(
  args: readonly string[],
  _path: string,
  _options: OptionTable,
): readonly string[] {
  return args;
}
