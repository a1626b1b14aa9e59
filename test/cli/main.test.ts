import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const root = fileURLToPath(new URL('../../', import.meta.url));

describe('the trtforge process', () => {
  test('prints the version of its package', () => {
    const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { version: string };
    expect(execFileSync(process.execPath, [main, '--version'], { encoding: 'utf8' })).toBe(`${version}\n`);
  });

  test('ends with the exit code of the result', () => {
    expect(spawnSync(process.execPath, [main, 'inspect', '/nowhere.onnx']).status).toBe(2);
  });

  test('lets its reader go: a closed pipe is no fault', () => {
    const { status, stderr } = spawnSync('sh', ['-c', `"${process.execPath}" "${main}" --help | true`], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
