import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { staticModel } from './native/tiny-models.js';
import { describeWith } from './support/needs.js';

const file = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

interface Step {
  readonly name?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}
interface Action {
  readonly inputs: Readonly<Record<string, { readonly default?: string }>>;
  readonly runs: { readonly steps: readonly Step[] };
}
const action = parse(readFileSync(file('action.yml'), 'utf8')) as Action;

const folder = mkdtempSync(join(tmpdir(), 'trtforge-action-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a step as a runner does: its inputs in the environment, its script in bash. */
function step(name: string, inputs: Readonly<Record<string, string>>) {
  const { run = '', env = {} } = action.runs.steps.find((each) => each.name === name) ?? {};
  const values = Object.entries(env).map(([variable, expression]) => {
    const input = /inputs\.([\w-]+)/.exec(expression)?.[1] ?? '';
    return [variable, inputs[input] ?? action.inputs[input]?.default ?? ''];
  });
  return spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', run], {
    cwd: folder,
    encoding: 'utf8',
    env: {
      ...process.env,
      ...Object.fromEntries(values),
      PATH: `${folder}/bin:${process.env.PATH}`,
      RUNNER_TEMP: folder,
      GITHUB_OUTPUT: join(folder, 'output'),
      GITHUB_STEP_SUMMARY: join(folder, 'summary'),
      TENSORRT_CACHE_DIR: join(folder, 'store'),
    },
  });
}

describe('the GitHub action', () => {
  test('takes no input into a script but by the environment', () => {
    for (const { run } of action.runs.steps) expect(run ?? '').not.toContain('${{');
  });

  test('installs the version of this package', () => {
    const { version } = JSON.parse(readFileSync(file('package.json'), 'utf8'));
    expect(action.inputs.version?.default).toBe(version);
  });
});

describeWith('toolchain', 'the steps of the GitHub action', () => {
  test('build and verify a model, and judge it by a policy with a summary', () => {
    mkdirSync(join(folder, 'bin'));
    const program = join(folder, 'bin', 'trtforge');
    writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${file('dist/main.js')}" "$@"\n`);
    chmodSync(program, 0o755);
    const inputs = { model: staticModel(folder), options: '--precision fp16', policy: 'gate.yaml' };
    const forged = step('Build and verify', inputs);
    expect([forged.status, forged.stderr.match(/^error.*$/m)]).toEqual([0, null]);
    expect(readFileSync(join(folder, 'output'), 'utf8')).toBe('result=trtforge/forge.json\n');
    const result = JSON.parse(readFileSync(join(folder, 'trtforge/forge.json'), 'utf8'));
    expect(result).toMatchObject({ schema: 'trtforge.forge/2', verdict: { outcome: 'pass' } });
    // The policy that its own results meet.
    const drafted = spawnSync(program, ['gate', 'init', 'trtforge/forge.json', '-o', 'gate.yaml'], {
      cwd: folder,
    });
    expect(drafted.status).toBe(0);
    const judged = step('Gate', inputs);
    expect([judged.status, judged.stderr]).toEqual([0, '']);
    expect(readFileSync(join(folder, 'summary'), 'utf8')).toContain('pass');
  });
});
