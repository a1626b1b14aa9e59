import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sampleBundle } from '../../products/bundle/report/sample.js';
import { failedSample } from '../../report/sample.js';
import { trtforge as run } from '../../support/trtforge.js';

const trtforge = (...args: readonly string[]) => run(args, {});

describe('trtforge report', () => {
  const root = mkdtempSync(join(tmpdir(), 'trtforge-report-command-'));
  beforeAll(() => writeFileSync(join(root, 'report.json'), JSON.stringify(failedSample())));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  test('writes the page beside the result and reports where; a failed run is no failure of rendering', async () => {
    const { exitCode, out } = await trtforge('report', root);
    expect([exitCode, out]).toEqual([0, join(root, 'report.html')]);
    expect(readFileSync(out, 'utf8')).toContain('<p class="verdict-word">Fail</p>');
  });

  test('finds the folder from the result file too', async () => {
    const { out } = await trtforge('report', join(root, 'report.json'), '--format', 'markdown');
    expect(out).toBe(join(root, 'report.md'));
    expect(readFileSync(out, 'utf8')).toMatch(/^# resnet50: ❌ Fail\n/);
  });

  test('-o - puts Markdown on stdout, for a job summary', async () => {
    const { out } = await trtforge('report', root, '--format', 'markdown', '-o', '-');
    await trtforge('report', root, '--format', 'markdown');
    expect(out).toBe(readFileSync(join(root, 'report.md'), 'utf8').trimEnd());
  });

  test.each([
    ['html', 'report.html', /<p class="verdict-word">Pass</],
    ['markdown', 'report.md', /^# parakeet: ✅ Pass/],
    ['json', 'build_report.json', /"schema": "trtforge\.bundle\/1"/],
  ])(
    'knows the folder of a bundle, and writes its %s as forge --meta does',
    async (format, name, content) => {
      const outdir = mkdtempSync(join(root, 'engines-'));
      writeFileSync(join(outdir, 'build_report.json'), JSON.stringify(sampleBundle()));
      const { exitCode, out } = await trtforge('report', outdir, '--format', format);
      expect([exitCode, out]).toEqual([0, join(outdir, name)]);
      expect(readFileSync(out, 'utf8')).toMatch(content);
    },
  );

  test('--json is one object that names the file', async () => {
    const { out } = await trtforge('report', root, '-o', join(root, 'other.html'), '--json');
    expect(JSON.parse(out)).toMatchObject({
      schema: 'trtforge.report/1',
      ok: true,
      path: join(root, 'other.html'),
    });
  });

  test.each([
    ['a run that is not there', ['nowhere'], 'TF_FILE_NOT_FOUND'],
    ['a format nobody knows', [root, '--format', 'pdf'], 'TF_USAGE'],
    ['a chart of a result without one', [root, '--format', 'svg'], 'TF_USAGE'],
  ])('%s ends with exit 2 and nothing written', async (_, argv, code) => {
    const { exitCode, err, out } = await trtforge('report', ...argv);
    expect([exitCode, out]).toEqual([2, '']);
    expect(err).toContain(code);
  });
});
