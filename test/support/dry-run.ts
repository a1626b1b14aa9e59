import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { planSchema } from '../../src/cli/printed-schemas.js';
import { codeIn, trtforge } from './trtforge.js';

/** Every path below a folder with the digest of its content; marks of engines in use are of this process. */
const contentOf = (folder: string): Readonly<Record<string, string | null>> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => !/(?:^|\/)in-use\.[^/]*$/.test(path))
      .sort()
      .map((path) => {
        const file = join(folder, path);
        const isFolder = statSync(file).isDirectory();
        return [path, isFolder ? null : createHash('sha256').update(readFileSync(file)).digest('hex')];
      }),
  );

/** The plan of a command line with --dry-run, which changed nothing below `folder`; `does` has the steps, skipped ones in brackets. */
export async function dryRunIn(
  folder: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
) {
  const { plan, code } = await tryDryRun(folder, args, environment);
  if (plan === null) throw new Error(`--dry-run of ${args.join(' ')} ended with ${code}.`);
  return { ...plan, does: plan.steps.map(({ does, skipped }) => (skipped === null ? does : `(${does})`)) };
}

/** Runs a command line with and without --dry-run; both must end with the same error code, and the former must change nothing. */
export async function refusedIn(
  folder: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
) {
  const { code, exitCode } = await tryDryRun(folder, args, environment);
  const real = await trtforge([...args, '--json'], environment);
  expect({ code, exitCode }).toEqual({ code: codeIn(real.json()), exitCode: real.exitCode });
  return code;
}

async function tryDryRun(folder: string, args: readonly string[], environment: NodeJS.ProcessEnv) {
  const before = contentOf(folder);
  const { exitCode, json } = await trtforge([...args, '--dry-run', '--json'], environment);
  expect(contentOf(folder)).toEqual(before);
  return {
    exitCode,
    code: codeIn(json()),
    plan: exitCode === 0 ? planSchema.parse(json()) : null,
  };
}
