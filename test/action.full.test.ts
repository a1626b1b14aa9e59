import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { staticModel } from './native/tiny-models.js';
import { describeWith } from './support/needs.js';

const file = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

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
const action = parse(readFileSync(file('action.yml'), 'utf8')) as Action;

const folder = mkdtempSync(join(tmpdir(), 'trtforge-action-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The value of an expression of the runner, of the forms that the action uses: a name, or a name compared with a text. */
function evaluate(expression: string, names: Readonly<Record<string, string>>): string | boolean {
  const [, name = '', operator, text] =
    /^([\w.-]+)(?: (==|!=) '([^']*)')?$/.exec(expression.replace(/^\$\{\{ | \}\}$/g, '')) ?? [];
  const value = names[name];
  if (value === undefined) throw new Error(`The action uses ${expression}, which this test does not know.`);
  return operator === undefined ? value : (value === text) === (operator === '==');
}

/**
 * Runs the action's scripts as a runner does: `if`, the inputs in the environment, a script file in bash, files for outputs, for the path and for the
 * summary. After the first script that fails only those run that always do.
 */
function runAction(inputs: Readonly<Record<string, string>>) {
  const names = Object.fromEntries(
    Object.entries(action.inputs).map(([name, input]) => [
      `inputs.${name}`,
      inputs[name] ?? input.default ?? '',
    ]),
  );
  const files = mkdtempSync(join(folder, 'runner-'));
  const place = (name: string) => join(files, name);
  writeFileSync(place('summary'), '');
  writeFileSync(place('path'), '');
  let [status, stdout, stderr] = [0, '', ''];
  for (const { id, if: condition, run, env = {} } of action.runs.steps) {
    const isAlways = condition === 'always()';
    if (run === undefined || (status !== 0 && !isAlways)) continue;
    if (condition !== undefined && !isAlways && evaluate(condition, names) !== true) continue;
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
  const result = String(evaluate(action.outputs.result?.value ?? '', names));
  return {
    status,
    stderr,
    annotations: stdout.split('\n').filter((line) => line.startsWith('::')),
    summary: readFileSync(place('summary'), 'utf8'),
    result: JSON.parse(readFileSync(join(folder, result), 'utf8')),
  };
}

describe('the GitHub action', () => {
  test('takes no input into a script but by the environment', () => {
    for (const { run } of action.runs.steps) expect(run ?? '').not.toContain('${{');
  });
});

describeWith('toolchain', 'the steps of the GitHub action', () => {
  const inputs = () => ({ model: staticModel(folder), options: '--precision fp16\n--no-cache\n' });

  test('build and verify a model with the options of every line; the output names the result', () => {
    const { status, stderr, annotations, summary, result } = runAction(inputs());
    expect([status, stderr.match(/^error.*$/m)]).toEqual([0, null]);
    expect(result).toMatchObject({
      schema: 'trtforge.forge/2',
      verdict: { outcome: 'pass' },
      request: { precision: 'fp16' },
    });
    expect(readdirSync(folder)).not.toContain('store');
    expect(annotations).toEqual([]);
    expect(summary).toContain('static.fp16.onnx');
  });

  test('judge the result by a policy, with a summary; a failed check is an annotation', () => {
    // The policy that its own results meet.
    const drafted = spawnSync(
      process.execPath,
      [file('dist/trtforge.cjs'), 'gate', 'init', 'trtforge/forge.json', '-o', 'gate.yaml'],
      { cwd: folder },
    );
    expect(drafted.status).toBe(0);
    const passed = runAction({ ...inputs(), policy: 'gate.yaml' });
    expect([passed.status, passed.annotations]).toEqual([0, []]);
    expect(passed.summary).toContain('pass');

    const check = { id: 'no-time', result: 'forge', field: 'totalMs', fail: { above: 0 } };
    const strict = `${readFileSync(join(folder, 'gate.yaml'), 'utf8').replace('checks: []', '')}checks: [${JSON.stringify(check)}]`;
    writeFileSync(join(folder, 'strict.yaml'), strict);
    const failed = runAction({ ...inputs(), policy: 'strict.yaml' });
    expect(failed.status).toBe(1);
    expect(failed.annotations[0]).toMatch(/^::error file=strict\.yaml,line=\d+,/);
    expect(failed.summary).toContain('no-time');
  });

  test('end with the exit code of forge, and its error is the result', () => {
    const { status, result } = runAction({ model: 'absent.onnx' });
    expect([status, result.error.code]).toEqual([2, 'TF_FILE_NOT_FOUND']);
  });
});
