import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { buildBundle } from '../../src/bundle/build-bundle.js';
import type { ChainCheck } from '../../src/bundle/chain-schema.js';
import { bundleMarkdown } from '../../src/bundle/report-markdown.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-markdown-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const check: ChainCheck = {
  candidate: 'engines',
  reference_backend: 'ONNX Runtime',
  candidate_backend: 'TensorRT',
  seed: 0,
  samples: 2,
  frames: 64,
  decisions: 40,
  emitted_tokens: 12,
  token_agreement: 39,
  duration_agreement: 40,
  equal_sequences: 1,
  first_difference: { sample: 1, index: 7 },
  close_call_share: 0.02,
  differences: [],
  smallest_margin: 0.1,
  components: [
    { component: 'joint', token_changes: 1, duration_changes: 0, max_abs: 0.4, relative_rms: 0.0123 },
  ],
  drifts: 'joint',
  outcome: 'fail',
  reasons: ['1 of 80 decisions differ'],
  ms: 12,
};

describe('the report of a bundle as Markdown', () => {
  test('says what failed, with nothing of a stranger’s file as markup', async () => {
    const meta = join(folder, 'model_meta.json');
    writeFileSync(meta, '{"model_name":"<b>|evil|</b>\\n# no"}');
    const outdir = join(folder, 'out');
    await buildBundle({ meta, outdir });
    const text = readFileSync(join(outdir, 'build_report.md'), 'utf8');
    expect(text).toMatch(/^# ERROR: \\<b\\>\\\|evil\\\|\\<\/b\\>/);
    expect(text).toContain('**TF_BUNDLE_COMPONENT_MISSING**');
  });

  test('has the components and the chained check', async () => {
    const meta = join(folder, 'other.json');
    writeFileSync(meta, '{"model_name":"speech"}');
    const report = await buildBundle({ meta, outdir: join(folder, 'again') });
    const text = bundleMarkdown({ ...report, outcome: 'fail', failure: null, checks: [check] });
    expect(text).toMatch(/^# FAIL: speech$/m);
    expect(text).toContain(
      'Of 40 decisions 39 tokens and 40 durations agree; 1 of 2 sequences are equal; most drift comes from the joint.',
    );
    expect(text).toContain('| joint | 1.23e-2 | 1 | 0 |');
    expect(text).toContain('- 1 of 80 decisions differ');
  });
});
