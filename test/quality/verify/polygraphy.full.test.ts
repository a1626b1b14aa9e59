import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parseCheck } from '../../../src/quality/verify/checks.js';
import { compareOutputs } from '../../../src/quality/verify/compare.js';
import { found } from '../../support/needs.js';

const python = found('python') ?? 'python3';
const hasPolygraphy = spawnSync(python, ['-c', 'import numpy, polygraphy.comparator']).status === 0;

const folder = mkdtempSync(join(tmpdir(), 'trtforge-with-polygraphy-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const TOLERANCES = [1e-12, 1e-10, 1e-6, 1e-4, 1e-2] as const;
const STATISTICS = ['elemwise', 'max', 'mean', 'median', 'quantile'] as const;

/** Saves results of two runners with random outputs, and says what Polygraphy finds with each tolerance and statistic. */
const script = `
import json, sys, numpy as np
from polygraphy.comparator import RunResults, Comparator
from polygraphy.comparator import compare
folder, rng = sys.argv[1], np.random.default_rng(int(sys.argv[2]))
r = {"y": rng.standard_normal((7, 901)).astype(np.float32), "z": rng.random(5000).astype(np.float16)}
c = {n: (v.astype(np.float32) * (1 + 1e-3 * rng.standard_normal(v.shape))).astype(v.dtype) for n, v in r.items()}
r["wide"] = rng.standard_normal(4000)
c["wide"] = r["wide"] + 1e-11 * rng.standard_normal(4000)
for name, outputs in (("a", c), ("b", r)):
    results = RunResults(); results.add([outputs], runner_name=name); results.save(f"{folder}/{name}.json")
func = getattr(compare, "SimpleCompareFunc", None) or compare.CompareFunc.simple
both = RunResults(); both.add([c], runner_name="a"); both.add([r], runner_name="b")
verdicts = {}
for tolerance in json.loads(sys.argv[3]):
    for statistic in json.loads(sys.argv[4]):
        f = func(check_error_stat=statistic, atol=tolerance, rtol=tolerance)
        verdicts[f"{statistic} {tolerance}"] = {n: bool(m) for n, m in f(both["a"][0], both["b"][0]).items()}
print("@@" + json.dumps(verdicts))
`;

describe.skipIf(!hasPolygraphy)('with Polygraphy itself (needs python3 with polygraphy and numpy)', () => {
  test.each([1, 2])('its results are read, and its verdicts are ours: seed %i', async (seed) => {
    const lists = [TOLERANCES, STATISTICS].map((list) => JSON.stringify(list));
    const { stdout, stderr } = spawnSync(python, ['-c', script, folder, String(seed), ...lists], {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    });
    const line = stdout.split('\n').find((each) => each.startsWith('@@'));
    if (line === undefined) throw new Error(stderr);
    const verdicts = JSON.parse(line.slice(2)) as Record<string, Record<string, boolean>>;
    expect(Object.keys(verdicts)).toHaveLength(TOLERANCES.length * STATISTICS.length);
    for (const [key, expected] of Object.entries(verdicts)) {
      const [statistic = '', tolerance = ''] = key.split(' ');
      const allowed = [{ name: null, value: Number(tolerance) }];
      const { outputs } = await compareOutputs({
        candidate: join(folder, 'a.json'),
        reference: join(folder, 'b.json'),
        checks: [parseCheck(statistic)],
        atol: allowed,
        rtol: allowed,
      });
      expect([key, Object.fromEntries(outputs.map(({ name, pass }) => [name, pass]))]).toEqual([
        key,
        expected,
      ]);
    }
  });
});
