import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { modelFamilies } from '../../examples/models/catalogue.js';
import { describeWith } from '../support/needs.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

describeWith('onnxruntime', 'the Prometheus example', () => {
  let folder: string;
  let child: ChildProcess | undefined;
  beforeAll(async () => {
    execFileSync('npx', ['tsc', '-p', 'tsconfig.examples.json'], { cwd: root, stdio: 'inherit' });
    folder = mkdtempSync(join(tmpdir(), 'trtforge-prometheus-'));
    await modelFamilies['streaming-encoder']!.write('tiny', folder, { seed: 1, external: false });
  });
  afterAll(() => {
    child?.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });

  it('answers a scrape with what the guard counted, while it streams and after', async () => {
    const main = join(root, 'build', 'examples', 'prometheus', 'main.js');
    const files = ['encoder_streaming.onnx', 'encoder_streaming.contract.json'].map((name) =>
      join(folder, name),
    );
    child = spawn(process.execPath, [main, ...files, '--port', '0', '--chunks', '20'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const address: string = (await lines.next()).value;
    expect(address).toMatch(/^http:\/\/localhost:\d+\/metrics$/);
    expect((await lines.next()).value).toBe('20 steps, 0 violations');
    const response = await fetch(address);
    expect(response.headers.get('content-type')).toContain('version=0.0.4');
    const text = await response.text();
    expect(text).toContain('trtforge_guard_steps_total{model="streaming-encoder-tiny"} 20\n');
    expect(text).toContain(
      'trtforge_guard_step_seconds_bucket{model="streaming-encoder-tiny",le="+Inf"} 20\n',
    );
    expect((await fetch(address.replace('/metrics', '/'))).status).toBe(404);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });
});
