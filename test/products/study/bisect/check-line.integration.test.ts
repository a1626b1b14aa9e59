import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, test } from 'vitest';
import { checkFacts, checkLine } from '../../../../src/products/study/bisect/check-line.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-check-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each([`/a/b.onnx`, `/a b/it's "5 $" \`x\`\\.onnx`])('a check gets the path %s as one word', (path) => {
  const files = { model: path, engine: '/an engine' };
  for (const place of ['{model}', `'{model}'`, `"{model}"`, `"--model={model}"`, '--model={model}']) {
    const { stdout } = spawnSync('/bin/sh', ['-c', checkLine(`printf '<%s>' ${place} "\\"" {}`, files)]);
    expect(String(stdout).replace('--model=', '')).toBe(`<${path}><"></an engine>`);
  }
});

test('what a check command names are the files that its words name, by content', () => {
  const script = join(folder, 'check.sh');
  const facts = () =>
    checkFacts(`sh '${script}' {} --limit=${script} 'echo ${'long '.repeat(2000)}' > ${script}`);
  writeFileSync(script, 'exit 1\n');
  const before = facts();
  expect(before.files.map(([word]) => word)).toEqual([script, script]);
  expect(before.folder).toBe(process.cwd());
  expect(facts()).toEqual(before);
  writeFileSync(script, 'exit 0\n');
  expect(facts()).not.toEqual(before);
});
