import { describe, expect, test } from 'vitest';
import { bundleReport } from '../../../../src/products/bundle/report/page.js';
import { bundleHeadline, timedPhases } from '../../../../src/products/bundle/report/sentences.js';
import { type BundleReport, bundleReportSchema } from '../../../../src/products/bundle/result.js';
import { renderReport } from '../../../../src/report/pages/report.js';
import { failedBundle, sampleBundle, sampleCheck, sampleComponent, stoppedBundle } from './sample.js';

const html = (result: BundleReport) => renderReport({ kind: bundleReport, result }, 'html').content;
const markdown = (result: BundleReport) => renderReport({ kind: bundleReport, result }, 'markdown').content;

const titles = (page: string) =>
  [...page.matchAll(/<h2 id="[^"]+-heading">([^<]+)<\/h2>/g)].map(([, title]) => title);
/** The text between two headings, without its tags. */
const part = (page: string, id: string) =>
  new RegExp(`<section id="${id}".*?</section>`, 's')
    .exec(page)![0]
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .replaceAll('&quot;', '"');

test.each([
  ['passes', sampleBundle()],
  ['fails', failedBundle()],
  ['stopped', stoppedBundle()],
])('the sample that %s is a report', (_, report) => {
  expect(bundleReportSchema.parse(report)).toEqual(report);
});

describe('the page of a bundle', () => {
  test('has every part of a run that passed, and the data itself', () => {
    const page = html(sampleBundle());
    expect(titles(page)).toEqual([
      'Components',
      'Chained check: engines',
      'Smoke runs, and what was not done',
      'Component: encoder',
      'Component: predictor',
      'Component: joint',
      'The run',
      'Environment',
      'Repeat it',
    ]);
    const [, island] = /<script type="application\/json" id="result">(.*)<\/script>/.exec(page)!;
    expect(JSON.parse(island!)).toEqual(sampleBundle());
    expect(part(page, 'components')).toMatch(/encoder built FP16 23\.8 MiB 12\.5 s/);
    const encoder = part(page, 'component-1');
    expect(encoder).toContain('audio_signal 1×128×16 1×128×64 1×128×256');
    expect(encoder).toMatch(/its SHA-256 (ef){32} external data 3 files, 45\.8 MiB/);
    expect(encoder).toMatch(/ Precision .* Sizes .* The model resnet50 has .* The engine Built now/);
    const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
    expect(part(page, 'repeat')).toContain('trtforge bundle forge out/model_meta.json --outdir engines');
    expect(part(page, 'environment')).toMatch(/GPU NVIDIA H200 \(sm_90\) driver 570\.86/);
  });

  test('draws the phases of every component on the clock of the bundle', () => {
    const run = part(html(sampleBundle()), 'phases');
    expect(run).toMatch(/17 phases in 43\.0 s/);
    expect(run).toMatch(/encoder: convert: from 2\.00 s to 4\.80 s encoder: build 10\.2 s/);
    const phases = timedPhases(sampleBundle()).phases.map(({ name }) => name);
    expect([phases[0], phases.at(-1)]).toEqual(['read', 'chained check']);
  });

  test('of a candidate that decides otherwise lists each difference with its margin, and which component moves', () => {
    const page = html(failedBundle());
    expect(page).toContain('<p class="verdict-word">Fail</p>');
    const chain = part(page, 'chain-1');
    expect(chain).toMatch(/tokens 39 40 97\.5 % durations 39 40 97\.5 % whole sequences 1 2 50 %/);
    expect(chain).toContain('Sample 0, decoded freely, differs from decision 3 on.');
    expect(chain).toMatch(
      /0 9 token 3 31 0\.4 0\.02 0\.01 wrong 1 12 duration 1 2 0\.001 3\.00e-4 0\.01 low margin/,
    );
    expect(chain).toMatch(/joint 0\.031 · 206\.7 % of the limit/);
    const marks = page
      .split('Relative error by component: engines</title>')[1]!
      .match(/rect class="mark \w+"/g)!;
    expect(marks.slice(0, 3).map((mark) => /mark (\w+)/.exec(mark)?.[1])).toEqual(['bad', 'accent', 'bad']);
  });

  test('of one that stopped states where, what to do, what is kept and what was not reached', () => {
    const page = html(stoppedBundle());
    const banner = /<div class="verdict fail".*?<\/div><\/div>/s.exec(page)![0].replace(/<[^>]+>/g, ' ');
    expect(banner).toContain('The bundle was not built: predictor failed (28.0 s).');
    expect(banner).toContain('It stopped in its step &quot;build predictor&quot;.');
    expect(banner).toContain('Node LSTM_12 has no implementation.');
    expect(banner).toContain('encoder has its engine and is not built again');
    const forced = { ...stoppedBundle(), repeat: 'trtforge bundle forge m.json --force-rebuild' };
    expect(markdown(forced)).toContain(
      'not built again when the same command is repeated without --force-rebuild.',
    );
    const { failure } = stoppedBundle();
    const cancelled = { ...stoppedBundle(), failure: { ...failure!, code: 'TF_CANCELLED' } };
    expect(markdown(cancelled)).toContain('The bundle was not built: predictor was cancelled');
    expect(banner).toMatch(/What to do: +Read build_logs\/predictor\.log\. +TF_BUILD_FAILED *, exit 3/);
    expect(banner).toMatch(
      /no-implementation +No tactic implements the node\. Give the builder more workspace\./,
    );
    expect(part(page, 'phases')).toMatch(
      /predictor: build failed .*joint: build not reached – the run stopped in predictor: build/,
    );
    expect(titles(page)).not.toContain('Chained check: engines');
  });

  test('of one whose engines are there and whose check failed states so first', () => {
    const { failure } = stoppedBundle();
    const report = sampleBundle({
      outcome: 'error',
      exitCode: 2,
      failure: { ...failure!, component: null, step: 'chained check' },
    });
    expect(bundleHeadline(report)).toContain(`3 engines in ${report.outdir}`);
    expect(bundleHeadline(report)).not.toContain('not built');
  });

  test('of one that passes with low-margin decisions reports them in its first sentence', () => {
    const [close] = failedBundle().checks[0]!.differences.filter((one) => one.low_margin);
    const banner = (page: string) => page.slice(page.indexOf('class="verdict'), page.indexOf('<section'));
    const page = html(sampleBundle({ checks: [sampleCheck({ differences: [close!] })] }));
    expect(banner(page)).toContain('the bundle decodes as its models do, except for low-margin decisions.');
    expect(banner(html(sampleBundle()))).toContain('the bundle decodes as its models do.');
  });

  test('states that a predictor was hardly tried where every decision is a blank', () => {
    const blanks = /Every decision is a blank/;
    expect(part(html(sampleBundle()), 'chain-1')).not.toMatch(blanks);
    const blank = sampleBundle({ checks: [sampleCheck({ emitted_tokens: 0 })] });
    expect(part(html(blank), 'chain-1')).toMatch(blanks);
  });

  test('is neither good nor bad after a cancelled run', () => {
    expect(html({ ...stoppedBundle(), exitCode: 4 })).toMatch(
      /class="verdict inconclusive"[\s\S]*?>Stopped</,
    );
  });

  test('lists what contradicts what, and repeats none of it above', () => {
    const message =
      'The bundle of out/model_meta.json contradicts itself in one place.\nencoder: axis 1 of "x" is 128.';
    const page = html(
      sampleBundle({
        outcome: 'error',
        exitCode: 2,
        mismatches: [{ component: 'encoder', tensor: 'x', message: 'axis 1 of "x" is 128.' }],
        failure: {
          component: null,
          step: 'read',
          code: 'TF_BUNDLE_MISMATCH',
          message,
          remedy: 'Export it again.',
        },
        components: [],
        checks: [],
        warnings: [],
        phases: [{ ...sampleBundle().phases[0]!, status: 'failed' }],
      }),
    );
    expect(titles(page).slice(0, 1)).toEqual(['Contradictions']);
    expect(part(page, 'mismatches')).toContain('encoder x axis 1 of "x" is 128.');
    expect(page.match(/axis 1 of (?:&quot;|\\")x(?:&quot;|\\") is 128/g)).toHaveLength(3); // the table, and message and mismatch in the data
  });

  test('states why the engine did not run, and what was not done', () => {
    const instead = 'this machine has no usable NVIDIA GPU (there is no NVIDIA driver)';
    const { smoke } = sampleComponent('joint');
    const page = html(
      sampleBundle({
        components: [sampleComponent('joint', { smoke: { ...smoke!, ran: 'typed model', instead } })],
        not_checked: [`The engines were not decoded with: ${instead}.`],
        checks: [sampleCheck({ candidate: 'typed models' })],
      }),
    );
    expect(part(page, 'smoke')).toMatch(/joint typed model .* this machine has no usable NVIDIA GPU/);
    expect(part(page, 'smoke')).toContain('not done The engines were not decoded with');
  });
});

describe('names from the meta file, the models and the builder', () => {
  const evil = '"><script>alert(1)</script>|`@x`\u202e';
  const { smoke, ...component } = sampleComponent(evil);
  const hostile = sampleBundle({
    model_name: evil,
    meta: evil,
    warnings: [evil],
    not_checked: [evil],
    mismatches: [{ component: evil, tensor: evil, message: evil }],
    repeat: `trtforge ${evil}`,
    components: [
      {
        ...component,
        warnings: [evil],
        profile: { min: { [evil]: [1] }, opt: { [evil]: [1] }, max: { [evil]: [1] } },
        smoke: {
          ...smoke!,
          backend: evil,
          instead: evil,
          outputs: [{ name: evil, dtype: evil, shape: [1], finite: false }],
        },
      },
    ],
    checks: [
      sampleCheck({
        candidate_backend: evil,
        drifts: evil,
        reasons: [evil],
        components: [{ component: evil, token_changes: 0, duration_changes: 0, max_abs: 1, relative_rms: 1 }],
      }),
    ],
    phases: [{ ...sampleBundle().phases[0]!, name: evil, status: 'failed', detail: evil }],
    failure: { component: evil, step: 'build', code: evil, message: evil, remedy: evil },
    outcome: 'error',
    exitCode: 3,
  });

  test('are text on the page', () => {
    const page = html(hostile);
    expect(page).not.toContain('<script>alert');
    expect(page.match(/<script/g)).toHaveLength(2);
    expect(page).not.toContain('\u202e');
    expect(page.match(/&quot;&gt;&lt;script&gt;alert\(1\)/g)!.length).toBeGreaterThan(20);
  });

  test('are text in Markdown, and split no table', () => {
    const rendered = markdown(hostile)
      .replace(/```[\s\S]*```/, '')
      .trimEnd();
    expect(rendered).not.toMatch(/<script>(?![^`\n]*`)/);
    expect(rendered).not.toContain('\u202e');
    const tables = rendered.split('\n\n').filter((block) => block.startsWith('| '));
    for (const rows of tables.map((block) => block.split('\n'))) {
      const cells = rows.map((row) => row.split(/(?<!\\)\|/).length);
      expect(new Set(cells).size, rows.join('\n')).toBe(1);
    }
    expect(tables.length).toBeGreaterThan(5);
  });
});

describe('the Markdown of a bundle', () => {
  test('has the components, the chained check and the commands', () => {
    const rendered = markdown(failedBundle());
    expect(rendered).toMatch(
      /^# parakeet: ❌ Fail\n\nFP16 · tensorrt 10\.6\.0\.26 · sm\\_90 · trtforge 0\.1\.0/,
    );
    expect(rendered).toContain('| encoder | built | FP16 | 23.8 MiB | 12.5 s |');
    expect(rendered).toContain('| `audio_signal` | 1×128×16 | 1×128×64 | 1×128×256 |');
    expect(rendered).toMatch(/## Component: encoder\n[\s\S]*\n### Precision\n\n118 of 122/);
    expect(rendered).toContain('| verdict | **fail** |');
    expect(rendered).toContain('| joint | 0.031 | 0.003 | 1 | 0 |');
    expect(rendered).toContain('| 0 | 9 | token | 3 | 31 | 0.4 | 0.02 | 0.01 | **wrong** |');
    expect(rendered).toContain('trtforge bundle forge out/model_meta.json');
  });

  test('states what stopped it and what to do', () => {
    const rendered = markdown(stoppedBundle());
    expect(rendered).toMatch(/^# parakeet: ❌ Stopped/);
    expect(rendered).toContain('**What to do:** Read build\\_logs/predictor.log. `TF_BUILD_FAILED`, exit 3');
  });
});
