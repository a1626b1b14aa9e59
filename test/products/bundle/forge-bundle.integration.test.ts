import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { PlanBuilder } from '../../../src/engines/builder/options.js';
import { TrtforgeError } from '../../../src/errors.js';
import { forgeBundle } from '../../../src/products/bundle/forge-bundle.js';
import type { BundleRequest } from '../../../src/products/bundle/options.js';
import { bundleReport } from '../../../src/products/bundle/report/page.js';
import { readReport, renderReport } from '../../../src/report/pages/report.js';
import { changeMeta, changeModel, recordingBuilder, writeBundle } from '../../support/bundle.js';
import { sampleToolchain } from '../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-forge-bundle-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let meta: string;
let outdir: string;
beforeEach(async () => {
  const folder = mkdtempSync(join(root, 'bundle-'));
  outdir = join(folder, 'engines');
  meta = await writeBundle(folder);
});

const forge = (build: PlanBuilder, more: Partial<BundleRequest> = {}) =>
  forgeBundle(
    {
      meta,
      outdir,
      toolchain: sampleToolchain,
      target: 'tensorrt-rtx:sm_89',
      store: false,
      smoke: 'never',
      check: false,
      memoryBudget: 1,
      ...more,
    },
    { build, environment: { ...process.env, XDG_CACHE_HOME: join(root, 'cache') } },
  );
const written = (name: string) => readFileSync(join(outdir, name), 'utf8');
const word = () => /<p class="verdict-word">(\w+)</.exec(written('report.html'))?.[1];

describe('a bundle through forge', () => {
  test('has its report as a page and as Markdown, and both can be made again from the data', async () => {
    const report = await forge(recordingBuilder().build);
    expect([report.outcome, word()]).toEqual(['built', 'Built']);
    expect(written('report.md')).toMatch(/^# parakeet-shaped-tiny: 🔷 Built/);
    const read = readReport(outdir, [bundleReport]);
    for (const format of ['html', 'markdown', 'json'] as const) {
      const { name, content } = renderReport(read, format);
      expect(content).toBe(written(name));
    }
  });

  test('names a component of which no node has the precision by what it is', async () => {
    changeModel(join(dirname(meta), 'joint.onnx'), ({ graph }) => {
      for (const [index, node] of graph!.node.entries()) node.name = `only/${index}`;
    });
    const report = await forge(recordingBuilder().build, {
      precision: 'bf16',
      conversion: { keepNodes: [/^only/] },
    });
    const found = report.components.map(({ component, forge: run, warnings }) => [
      component,
      run?.request.precision,
      warnings.filter((warning) => warning.includes('keep-node (')).length,
    ]);
    expect(report.outcome).toBe('built');
    expect(found).toEqual([
      ['encoder', 'bf16', 0],
      ['predictor', 'bf16', 0],
      ['joint', 'as-is', 1],
    ]);
  });

  test('has them when a build fails: what is done, what stopped, what to do', async () => {
    const { build } = recordingBuilder((model) =>
      model.includes('predictor')
        ? new TrtforgeError('TF_BUILD_FAILED', 'LSTM_12 has no <b>tactic</b>.')
        : {},
    );
    const report = await forge(build);
    expect([report.outcome, word()]).toEqual(['error', 'Stopped']);
    const page = written('report.html');
    expect(page).toContain('It stopped in its step &quot;build predictor&quot;.');
    expect(page).toContain('LSTM_12 has no &lt;b&gt;tactic&lt;/b&gt;.');
    expect(page).toContain('encoder has its engine and is not built again');
    expect(written('report.md')).toContain('**What to do:**');
  });

  test('reports of each component what its builder’s lines show although it passed, and nothing of harmless ones', async () => {
    const { build } = recordingBuilder();
    const says = (model: string) =>
      model.includes('joint')
        ? 'Memory Pools: workspace: 0.03 MiB'
        : 'Tactic Device request: 200MB Available: 100MB. Device memory is insufficient to use tactic.';
    const talking: PlanBuilder = (request, files, context) => {
      context.emit?.({ type: 'log', source: 'trtexec', severity: 'info', message: says(files.modelPath) });
      return build(request, files, context);
    };
    const report = await forge(talking);
    const warnings = Object.fromEntries(report.components.map((each) => [each.component, each.warnings]));
    expect(report.outcome).toBe('built');
    expect(warnings.joint).toEqual([expect.stringMatching(/\(workspace-parsed-tiny\)$/)]);
    expect([warnings.encoder, warnings.predictor]).toEqual([[], []]);
    expect(written('report.html')).toContain('workspace-parsed-tiny');
  });

  test('leaves those of a run that finished when the request of a later one is wrong, or it is stopped', async () => {
    await forge(recordingBuilder().build);
    const names = ['build_report.json', 'report.html', 'report.md', 'encoder.engine'];
    const before = names.map(written);
    changeMeta(meta, { features: { n_mels: 80 }, model_name: '<img src=x onerror=alert(1)>' });
    const contradicting = await forge(recordingBuilder().build);
    expect(contradicting).toMatchObject({
      exitCode: 2,
      report: null,
      mismatches: [{ component: 'encoder' }],
    });
    expect(await forge(recordingBuilder().build, { meta: `${meta}x` })).toMatchObject({
      exitCode: 2,
      report: null,
    });
    const none = () => new TrtforgeError('TF_BUILD_FAILED', 'No tactic.');
    changeMeta(meta, { features: null });
    expect(await forge(recordingBuilder(none).build, { forceRebuild: true })).toMatchObject({
      outcome: 'error',
      failure: { code: 'TF_BUILD_FAILED' },
      report: null,
    });
    expect(names.map(written)).toEqual(before);
    const views = { kind: bundleReport, result: contradicting };
    const html = renderReport(views, 'html').content;
    expect(html).toContain('axis 1 of &quot;audio_signal&quot; is 128; the meta file states 80 mel bins.');
    expect(html + renderReport(views, 'markdown').content).not.toContain('<img');
  });

  test('fails as the run did where the page cannot be written either', async () => {
    mkdirSync(join(outdir, 'report.html'), { recursive: true });
    const { build } = recordingBuilder(() => new TrtforgeError('TF_BUILD_FAILED', 'No tactic.'));
    expect(await forge(build)).toMatchObject({ outcome: 'error', failure: { code: 'TF_BUILD_FAILED' } });
    await expect(forge(recordingBuilder().build)).rejects.toMatchObject({ code: 'TF_WRITE_FAILED' });
  });
});
