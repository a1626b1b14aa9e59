import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { TimingCaches } from '../../../src/engines/store/timing-caches.js';
import { TimingFolder } from '../../../src/engines/store/timing-folder.js';
import { noTrust } from '../../../src/engines/store/trust.js';
import { fakeIdentity } from '../../fakes/tensorrt/affine.js';
import { runs } from '../../support/runs.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-timing-descriptions-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const caches = () =>
  new TimingCaches({
    scope: { target: fakeIdentity().target, gpu: 'NVIDIA H200', driverBranch: '580' },
    folder,
    local: new TimingFolder(join(folder, 'store')),
    remote: null,
    trust: noTrust,
    work: {},
  });

test('a description of any bytes is a warning at most', async () => {
  const cache = join(folder, 'cache');
  writeFileSync(cache, 'times of kernels');
  await caches().keep(cache, []);
  expect(await caches().take()).toHaveLength(1);
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const path = join(folder, names.find((name) => name.endsWith('.timing.json'))!);
  const sound = readFileSync(path);
  for (let run = 0; run < runs(2000); run++) {
    const bytes = Buffer.from(
      sound.subarray(0, run % 3 === 0 ? Math.trunc(sound.length * Math.random()) : undefined),
    );
    for (let change = 0; change < 1 + (run % 4) && bytes.length > 0; change++)
      bytes[Math.trunc(Math.random() * bytes.length)] = Math.trunc(Math.random() * 256);
    writeFileSync(path, bytes);
    const those = caches();
    const taken = await those.take();
    expect(taken.length + those.warnings.length, bytes.toString('latin1')).toBe(1);
  }
});
