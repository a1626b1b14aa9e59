import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import type { Explored } from '../../../src/products/explore/result.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { trtforge } from '../../support/trtforge.js';

const fixtures = join(import.meta.dirname, '../../fixtures');
const recorded = join(fixtures, 'engine-layers/10.6-resnet50-fp16.json');
const times = join(fixtures, 'trtexec-runs/10.6-profile_b32.json');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-explore-loaded-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
let environment: NodeJS.ProcessEnv = {};

/** A fake of TensorRT 10.3 and its GPU: the engine that it loads has the layers that trtexec exported of a real one. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({
    TENSORRT_HOME: engine.install(at('home')),
    TRTFORGE_TOOLCHAINS: at('none'),
    XDG_CACHE_HOME: at('cache'),
  });
  engine.bench.enter(environment);
  engine.writePlan(at('a.engine'), {
    kind: 'affine',
    inner: 4,
    layers: JSON.stringify(JSON.parse(readFileSync(recorded, 'utf8'))),
  });
});

async function explored(...words: readonly string[]): Promise<Explored> {
  const { exitCode, json } = await trtforge(['explore', ...words, '--json'], environment);
  expect(exitCode, JSON.stringify(json().error)).toBe(0);
  return json() as unknown as Explored;
}

test('an engine that the GPU loads has the rows of its exported layers, and differs from them in nothing', async () => {
  const page = at('page.html');
  const { sides, comparison, written } = await explored(
    ...[at('a.engine'), recorded, '--from', times, '--from-b', times, '-o', page],
  );
  const [loaded, exported] = sides;
  expect([loaded!.kind, exported!.kind, loaded!.profile]).toEqual(['engine', 'layers', 0]);
  expect(loaded!.rows).toEqual(exported!.rows);
  expect(loaded!.timing).toEqual(exported!.timing);
  expect(comparison!.counts).toMatchObject({ same: comparison!.groups.length, changed: 0 });
  expect(written).toEqual([page]);
});
