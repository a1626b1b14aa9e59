import type { Console } from '../../src/cli/output.js';

/** A console that remembers what was said, as a pipe (no terminal) unless told otherwise. */
export function recordedConsole(environment: NodeJS.ProcessEnv = {}, terminal = false) {
  const out: string[] = [];
  const err: string[] = [];
  const console: Console = {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
    errRaw: (text) => err.push(text),
    isTerminal: { out: terminal, err: terminal },
    columns: () => 100,
    environment,
  };
  return { console, out: () => out.join('\n'), err: () => err.join('\n') };
}
