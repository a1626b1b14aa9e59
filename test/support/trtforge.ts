import { runProgram } from '../../src/cli/program.js';
import { products } from '../../src/registry.js';
import { recordedConsole } from './console.js';

/** Runs a command line in this process, as dist/main.js would: its exit code, what it printed, and its JSON. */
export async function trtforge(args: readonly string[], environment: NodeJS.ProcessEnv = process.env) {
  const recorded = recordedConsole(environment);
  const program = { name: 'trtforge', version: '0', summary: '', products };
  const exitCode = await runProgram(program, args, recorded.console);
  return {
    exitCode,
    out: recorded.out(),
    err: recorded.err(),
    json: <T>() => JSON.parse(recorded.out()) as T,
  };
}
