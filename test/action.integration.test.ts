import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { action, runAction } from './support/action.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-action-'));
afterAll(() => rmSync(root, { recursive: true }));

/** Writes its arguments as a line of JSON. */
const STUB = `#!${process.execPath}
require('node:fs').appendFileSync('lines', JSON.stringify(process.argv.slice(2)) + '\\n');
console.log('{}');
`;

let folder: string;
const stub = join(root, 'bin');
mkdirSync(stub);
writeFileSync(join(stub, 'trtforge'), STUB, { mode: 0o755 });
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
});
const run = (inputs: Readonly<Record<string, string>>) => runAction(folder, inputs, { stub });
const lines = (): readonly string[][] =>
  existsSync(join(folder, 'lines'))
    ? readFileSync(join(folder, 'lines'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    : [];

describe('the GitHub action', () => {
  test('takes no input into a script but by the environment', () => {
    for (const { run: script } of action.runs.steps) expect(script ?? '').not.toContain('${{');
  });

  test.each(['x\nresult=/etc/passwd', 'x\r\nleak=1', '\n', 'x\n/etc/shadow\ny'])(
    'a run root with a line end adds no output and no file: %j',
    (given) => {
      const { status, outputs, ran, annotations } = run({ model: 'm.onnx', 'run-root': given });
      expect({ status, outputs }).toEqual({ status: 2, outputs: {} });
      expect(annotations).toHaveLength(1);
      expect(ran).not.toContain('Upload the report');
      expect(lines()).toEqual([]);
      expect(readdirSync(folder).filter((name) => !name.startsWith('runner-'))).toEqual([]);
    },
  );

  test.each([
    '--help',
    '-o',
    '--config=evil.yaml',
    '--',
    'a b',
    '$(touch ran)',
    '`touch ran`',
    "';touch ran;'",
    '*',
  ])('the model %j is a file, no option and no line', (model) => {
    const { status, outputs, ran } = run({ model, policy: model, 'run-root': '-out' });
    expect({ status, outputs }).toEqual({
      status: 0,
      outputs: { 'steps.forge.outputs.result': '-out/forge.json' },
    });
    const [forge = [], gate = []] = lines();
    expect(forge.slice(forge.indexOf('--'))).toEqual(['--', model]);
    expect(gate).toEqual(['gate', '--github', '--', model, '-out/forge.json']);
    expect(ran).toContain('Upload the report');
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  });

  test('a target is one, whatever it is; options are words', () => {
    run({ model: 'm.onnx', target: '--cache-dir=/', options: '--precision fp16\n$(touch ran) *' });
    expect(lines()).toEqual([
      [
        'forge',
        '--target=--cache-dir=/',
        '--run-root=trtforge',
        '--json',
        '--precision',
        'fp16',
        '$(touch',
        'ran)',
        '*',
        '--',
        'm.onnx',
      ],
    ]);
  });
});
