import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeWith } from '../support/needs.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const examples = join(root, 'build', 'examples');

/** The examples run as a user runs them: compiled, over the compiled package. */
describeWith('toolchain', 'the library example', () => {
  let folder: string;
  let model: string;
  beforeAll(() => {
    execFileSync('npx', ['tsc', '-p', 'tsconfig.examples.json'], { cwd: root, stdio: 'inherit' });
    folder = mkdtempSync(join(tmpdir(), 'trtforge-library-'));
    model = join(folder, 'resnet.onnx');
    execFileSync(process.execPath, [join(examples, 'models', 'main.js'), 'resnet50', '-o', model]);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const tour = (...parameters: string[]) =>
    spawnSync(process.execPath, [join(examples, 'library', 'tour.js'), ...parameters], {
      encoding: 'utf8',
      cwd: folder,
      env: { ...process.env, TENSORRT_CACHE_DIR: join(folder, 'store') },
    });

  it('inspects, converts, builds, finds again and forges', () => {
    const { stdout, stderr, status } = tour(
      model,
      'input:1x3x32x32/4x3x32x32/8x3x32x32',
      join(folder, 'tour'),
    );
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout).toContain('129754 parameters, inputs: input float32 [batch, 3, 32, 32]');
    expect(stdout).toMatch(/first time built: .*\.engine/);
    expect(stdout).toMatch(/second time local: .*\.engine/);
    expect(stdout).toMatch(/^pass: /m);
    const report = /^report: (.*)$/m.exec(stdout)?.[1];
    expect(readFileSync(report ?? '', 'utf8')).toContain('<html');
  });

  it('ends with code, sentence and remedy when the model cannot be had', () => {
    const { stderr, status } = tour(join(folder, 'missing.onnx'), 'input:1x3x32x32');
    expect(status).toBe(2);
    expect(stderr).toMatch(/^TF_FILE_NOT_FOUND: .*missing\.onnx does not exist/);
  });
});
