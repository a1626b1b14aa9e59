import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command } from '../../../src/cli/commands/report.js';
import { runProgram } from '../../../src/cli/program.js';
import { sampleBundle } from '../../products/bundle/report/sample.js';
import { failedSample } from '../../report/sample.js';
import { recordedConsole } from '../../support/console.js';

const program = {
  name: 'trtforge',
  version: '0.0.0',
  summary: '',
  entries: [{ name: 'report', summary: command.summary, load: async () => command }],
};

async function trtforge(...argv: readonly string[]) {
  const recorded = recordedConsole();
  const exitCode = await runProgram(program, argv, recorded.console);
  return { exitCode, out: recorded.out(), err: recorded.err() };
}

describe('trtforge report', () => {
  const run = mkdtempSync(join(tmpdir(), 'trtforge-report-command-'));
  beforeAll(() => writeFileSync(join(run, 'report.json'), JSON.stringify(failedSample())));
  afterAll(() => rmSync(run, { recursive: true, force: true }));

  test('writes the page beside the result and says where; a failed run is no failure of rendering', async () => {
    const { exitCode, out } = await trtforge('report', run);
    expect([exitCode, out]).toEqual([0, join(run, 'report.html')]);
    expect(readFileSync(out, 'utf8')).toContain('<p class="verdict-word">Fail</p>');
  });

  test('finds the folder from the result file too', async () => {
    const { out } = await trtforge('report', join(run, 'report.json'), '--format', 'markdown');
    expect(out).toBe(join(run, 'report.md'));
    expect(readFileSync(out, 'utf8')).toMatch(/^# resnet50: ❌ Fail\n/);
  });

  test('-o - puts Markdown on stdout, for a job summary', async () => {
    const { out } = await trtforge('report', run, '--format', 'markdown', '-o', '-');
    expect(out).toMatch(/^# resnet50/);
  });

  test.each([
    ['html', 'report.html', /<p class="verdict-word">Pass</],
    ['markdown', 'report.md', /^# parakeet: ✅ Pass/],
    ['json', 'build_report.json', /"schema": "trtforge\.bundle\/1"/],
  ])(
    'knows the folder of a bundle, and writes its %s as forge --meta does',
    async (format, name, content) => {
      const outdir = mkdtempSync(join(run, 'engines-'));
      writeFileSync(join(outdir, 'build_report.json'), JSON.stringify(sampleBundle()));
      const { exitCode, out } = await trtforge('report', outdir, '--format', format);
      expect([exitCode, out]).toEqual([0, join(outdir, name)]);
      expect(readFileSync(out, 'utf8')).toMatch(content);
    },
  );

  test('--json is one object that names the file', async () => {
    const { out } = await trtforge('report', run, '-o', join(run, 'other.html'), '--json');
    expect(JSON.parse(out)).toMatchObject({
      schema: 'trtforge.report/1',
      ok: true,
      path: join(run, 'other.html'),
    });
  });

  test.each([
    ['a run that is not there', ['nowhere'], 'TF_FILE_NOT_FOUND'],
    ['a format nobody knows', [run, '--format', 'pdf'], 'TF_USAGE'],
  ])('%s ends with exit 2 and nothing written', async (_, argv, code) => {
    const { exitCode, err, out } = await trtforge('report', ...argv);
    expect([exitCode, out]).toEqual([2, '']);
    expect(err).toContain(code);
  });
});
