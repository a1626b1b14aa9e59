import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

interface Step {
  readonly id?: string;
  readonly name?: string;
  readonly if?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}
interface Action {
  readonly inputs: Readonly<Record<string, { readonly default?: string }>>;
  readonly outputs: Readonly<Record<string, { readonly value: string }>>;
  readonly runs: { readonly steps: readonly Step[] };
}
export const action = parse(readFileSync(file('action.yml'), 'utf8')) as Action;

/** The value of an expression of the runner, of the forms that the action uses: a name, or a name compared with a text. */
function evaluate(expression: string, names: Readonly<Record<string, string>>): string | boolean {
  if (expression === 'always()') return true;
  const [, name = '', operator, text] =
    /^(?:always\(\) && )?([\w.-]+)(?: (==|!=) '([^']*)')?$/.exec(
      expression.replace(/^\$\{\{ | \}\}$/g, ''),
    ) ?? [];
  // A step that set no output has an empty one.
  const value = names[name] ?? (name.startsWith('steps.') ? '' : undefined);
  if (value === undefined) throw new Error(`The action uses ${expression}, which this test does not know.`);
  return operator === undefined ? value : (value === text) === (operator === '==');
}

/**
 * Runs the action's scripts as a runner does: `if`, the inputs in the environment, a script file in bash, files for outputs, for the path and for the
 * summary. After the first script that fails only those run that always do. `stub`: a folder with a program `trtforge`, which is not installed then.
 */
export function runAction(
  folder: string,
  inputs: Readonly<Record<string, string>>,
  { stub }: { readonly stub?: string } = {},
) {
  const names = Object.fromEntries(
    Object.entries(action.inputs).map(([name, input]) => [
      `inputs.${name}`,
      inputs[name] ?? input.default ?? '',
    ]),
  );
  const files = mkdtempSync(join(folder, 'runner-'));
  const place = (name: string) => join(files, name);
  writeFileSync(place('summary'), '');
  writeFileSync(place('path'), stub ?? '');
  let [status, stdout, stderr] = [0, '', ''];
  const ran: string[] = [];
  for (const { id, name = '', if: condition, run, env = {} } of action.runs.steps) {
    if (stub !== undefined && name === 'Install trtforge') continue;
    if (status !== 0 && condition?.startsWith('always()') !== true) continue;
    if (condition !== undefined && evaluate(condition, names) !== true) continue;
    ran.push(name);
    if (run === undefined) continue;
    writeFileSync(place('script.sh'), run);
    writeFileSync(place('output'), '');
    const done = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', place('script.sh')], {
      cwd: folder,
      encoding: 'utf8',
      env: {
        ...process.env,
        ...Object.fromEntries(
          Object.entries(env).map(([variable, value]) => [variable, String(evaluate(value, names))]),
        ),
        PATH: `${readFileSync(place('path'), 'utf8').trim()}:${process.env.PATH}`,
        RUNNER_TEMP: files,
        GITHUB_ACTION_PATH: file('.'),
        GITHUB_PATH: place('path'),
        GITHUB_OUTPUT: place('output'),
        GITHUB_STEP_SUMMARY: place('summary'),
        TENSORRT_CACHE_DIR: join(folder, 'store'),
      },
    });
    for (const line of readFileSync(place('output'), 'utf8').split('\n').filter(Boolean)) {
      const [output, value] = line.split(/=(.*)/s);
      names[`steps.${id}.outputs.${output}`] = value ?? '';
    }
    status = status || (done.status ?? 1);
    stdout += done.stdout;
    stderr += done.stderr;
  }
  return {
    ...{ status, stderr, ran },
    annotations: stdout.split('\n').filter((line) => line.startsWith('::')),
    summary: readFileSync(place('summary'), 'utf8'),
    outputs: Object.fromEntries(
      Object.entries(names).flatMap(([name, value]) => (name.startsWith('steps.') ? [[name, value]] : [])),
    ),
    /** The file that the action's output names. */
    result: join(folder, String(evaluate(action.outputs.result?.value ?? '', names))),
  };
}
