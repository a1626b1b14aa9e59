import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { staticModel } from './native/tiny-models.js';
import { runAction as runSteps } from './support/action.js';
import { describeWith } from './support/needs.js';

const file = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const folder = mkdtempSync(join(tmpdir(), 'trtforge-action-'));
afterAll(() => rmSync(folder, { recursive: true }));

const runAction = (inputs: Readonly<Record<string, string>>) => {
  const ran = runSteps(folder, inputs);
  return { ...ran, result: JSON.parse(readFileSync(ran.result, 'utf8')) };
};

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
    const drafts = readFileSync(join(folder, 'gate.yaml'), 'utf8');
    const strict = drafts.replace(/^checks:$/m, `checks:\n  - ${JSON.stringify(check)}`);
    expect(strict).not.toBe(drafts);
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
