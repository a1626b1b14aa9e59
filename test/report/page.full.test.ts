import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleReport } from '../../src/products/bundle/report/page.js';
import { compareVariants } from '../../src/products/evaluation/compare/compare-variants.js';
import { comparisonReport } from '../../src/products/evaluation/compare/page.js';
import { fleetReport } from '../../src/products/fleet/page.js';
import { rehearsalReport } from '../../src/products/fleet/rehearsal-page.js';
import { parityReport } from '../../src/products/streaming/report/page.js';
import { benchReport } from '../../src/report/pages/bench.js';
import { forgeReport } from '../../src/report/pages/forge.js';
import { picturesOf, renderComparison, renderReport } from '../../src/report/pages/report.js';
import { failedBundle, sampleBundle, sampleCheck, stoppedBundle } from '../products/bundle/report/sample.js';
import { sampleVariants } from '../products/evaluation/compare/sample.js';
import { sampleRehearsal, sampleStatus } from '../products/fleet/sample-status.js';
import { sampleParity } from '../products/streaming/report/sample.js';
import { axeFaults } from '../support/axe.js';
import { launchChromium } from '../support/browser.js';
import { describeWith } from '../support/needs.js';
import {
  coldStartsSample,
  comparedSamples,
  percentileBench,
  retrainedSample,
  severalSamples,
  sweptBench,
} from './compared-samples.js';
import { pictured } from './pictured.js';
import {
  captionNumbers,
  clipboardText,
  columnShown,
  contrasts,
  forbidClipboard,
  labelPlaces,
  openEverything,
  overlappingLabels,
  pageWidth,
  paperColor,
  scrollToEnd,
  selectedText,
} from './probes.js';
import { closeLimits, failedSample, sampleResult, stoppedSample } from './sample.js';

const passed = sampleResult();
const streamed = (result: unknown) => renderReport({ kind: parityReport, result }, 'html').content;
const forged = (result: unknown) => renderReport({ kind: forgeReport, result }, 'html').content;
const bundled = (result: unknown) => renderReport({ kind: bundleReport, result }, 'html').content;
const compared = () => {
  const result = compareVariants(sampleVariants, {
    root: 'tmp/root',
    ran: new Set(),
    damaged: [],
    warnings: [],
    repeat: 'trtforge',
  });
  return renderReport({ kind: comparisonReport, result }, 'html').content;
};
const sideBySide = (results: readonly unknown[], kind = forgeReport) => {
  const sides = results.map((result, at) => ({ kind, root: `runs/${at}`, path: `runs/${at}`, result }));
  return renderComparison(sides, 'html', [kind], []).content;
};
const fleets = (result: unknown) => renderReport({ kind: fleetReport, result }, 'html').content;
const HOSTILE = `</title><script>document.title = 'owned'</script><img src=x onerror="x">\u202e'"${'long'.repeat(20)}`;
const benches = [percentileBench(2000), percentileBench(1000)] as const;
const shown = { kind: forgeReport, result: await pictured() };
const pages: Readonly<Record<string, string>> = {
  pictures: renderReport(shown, 'html', [], await picturesOf(shown, 'html')).content,
  pass: forged(passed),
  fail: forged(failedSample()),
  stopped: forged(stoppedSample()),
  'close limits': forged(closeLimits()),
  fleet: fleets(sampleStatus()),
  'fleet of hostile names': fleets(sampleStatus(HOSTILE)),
  rehearsal: renderReport({ kind: rehearsalReport, result: sampleRehearsal }, 'html').content,
  bundle: bundled(sampleBundle()),
  'bundle that fails': bundled(failedBundle()),
  'bundle that stopped': bundled(stoppedBundle()),
  stream: streamed(sampleParity()),
  comparison: compared(),
  'two runs': sideBySide(comparedSamples()),
  'five runs': sideBySide(severalSamples()),
  sweep: renderReport({ kind: benchReport, result: sweptBench() }, 'html').content,
  'two runs that differ': sideBySide([comparedSamples()[0], retrainedSample()]),
  bench: renderReport({ kind: benchReport, result: { ...benches[0], cold: coldStartsSample() } }, 'html')
    .content,
  'two benches': sideBySide(benches, benchReport),
  'two bundles': sideBySide([sampleBundle(), failedBundle()], bundleReport),
  'two streams': sideBySide([sampleParity(), sampleParity()], parityReport),
};

describeWith('chromium', 'report.html in Chromium', (executable) => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-page-'));
  let browser: Browser;

  beforeAll(async () => {
    browser = await launchChromium(executable);
    for (const [name, page] of Object.entries(pages)) writeFileSync(join(folder, `${name}.html`), page);
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  });

  interface Look {
    readonly scheme?: 'light' | 'dark';
    readonly width?: number;
    readonly permissions?: string[];
    readonly javaScriptEnabled?: boolean;
  }

  /** Opens a page and holds it to silence: nothing on the console, no request but the file itself. */
  async function open(name: string, look: Look, see: (page: Page) => Promise<void>): Promise<void> {
    const context = await browser.newContext({
      colorScheme: look.scheme ?? 'light',
      viewport: { width: look.width ?? 1280, height: 900 },
      permissions: look.permissions ?? [],
      javaScriptEnabled: look.javaScriptEnabled ?? true,
    });
    const page = await context.newPage();
    const complaints: string[] = [];
    const requests: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => requests.push(request.url()));
    const url = pathToFileURL(join(folder, `${name}.html`)).href;
    await page.goto(url);
    await see(page);
    expect(complaints).toEqual([]);
    expect(requests.filter((request) => request !== url && !request.startsWith('data:'))).toEqual([]);
    await context.close();
  }

  test.each([
    ['pass', 'Pass', 6, 3],
    ['fail', 'Fail', 5, 3],
    ['stopped', 'Inconclusive', 4, 2],
  ])('a run: %s shows its verdict first, and every chart', async (name, word, charts, dials) => {
    await open(name, {}, async (page) => {
      expect(await page.locator('.verdict-word').textContent()).toBe(word);
      expect(await page.locator('svg.chart').count()).toBe(charts);
      expect(await page.locator('svg.dial').count()).toBe(dials);
      expect(await page.locator('h1').textContent()).toBe('resnet50');
      const verdict = (await page.locator('.verdict').boundingBox())!;
      expect(verdict.y + verdict.height).toBeLessThan(900);
    });
  });

  test.each([
    ['bundle', 'Pass', 11, 2],
    ['bundle that fails', 'Fail', 11, 2],
    ['bundle that stopped', 'Stopped', 9, 0],
  ])('a %s shows its verdict first, and every chart', async (name, word, charts, dials) => {
    await open(name, {}, async (page) => {
      expect(await page.locator('.verdict-word').textContent()).toBe(word);
      expect(await page.locator('svg.chart').count()).toBe(charts);
      expect(await page.locator('svg.dial').count()).toBe(dials);
      expect(await page.locator('script:not([type="application/json"])').count()).toBe(1);
      const verdict = (await page.locator('.verdict').boundingBox())!;
      expect(verdict.y + verdict.height).toBeLessThan(900);
    });
  });

  const looks = Object.keys(pages).flatMap((name) =>
    (['light', 'dark'] as const).flatMap((scheme) => [390, 1280].map((width) => ({ name, scheme, width }))),
  );

  test.each(looks)(
    '$name, $scheme, $width px wide: readable, and no wider than the window',
    async ({ name, ...look }) => {
      await open(name, look, async (page) => {
        await page.evaluate(openEverything);
        expect(await page.evaluate(pageWidth)).toBeLessThanOrEqual(look.width);
        const [lowest] = await page.evaluate(contrasts);
        expect(lowest!.ratio, lowest!.text).toBeGreaterThanOrEqual(4.5);
        expect(await axeFaults(page)).toEqual([]);
        expect(await page.evaluate(overlappingLabels)).toEqual([]);
        const labels = await page.evaluate(labelPlaces);
        expect(labels.filter(({ left, right }) => Math.min(left, right) < -1)).toEqual([]);
      });
    },
  );

  test.each([390, 1280])('both sides of a picture are drawn over it, %i px wide', async (width) => {
    await open('pictures', { width }, async (page) => {
      const drawn = page.locator('.pair svg');
      expect(await drawn.count()).toBe(6);
      const [theirs, ours] = await Promise.all([0, 1].map((at) => drawn.nth(at).boundingBox()));
      expect(Math.abs(theirs!.width / theirs!.height - 1.5)).toBeLessThan(0.1);
      expect(ours!.x > theirs!.x).toBe(width > 600);
      const [first, second] = await Promise.all([0, 1].map((at) => drawn.nth(at).screenshot()));
      const inside = sharp(first).extract({ left: 6, top: 6, width: 1, height: 1 });
      const levels = await inside.removeAlpha().raw().toBuffer();
      // The picture is blue: its definition is found, and no policy stops it.
      expect([...levels].map((level) => Math.round(level / 64))).toEqual([0, 0, 3]);
      expect(first!.equals(second!)).toBe(false);
    });
  });

  test('light and dark are two looks, not one', async () => {
    const papers: string[] = [];
    for (const scheme of ['light', 'dark'] as const)
      await open('pass', { scheme }, async (page) => {
        papers.push(await page.evaluate(paperColor));
      });
    expect(new Set(papers).size).toBe(2);
  });

  test('a screen reader finds landmarks, named charts and table headers', async () => {
    await open('pass', {}, async (page) => {
      const tree = await page.locator('body').ariaSnapshot();
      for (const role of ['banner', 'navigation "Contents"', 'main', 'contentinfo'])
        expect(tree).toContain(`- ${role}`);
      expect(tree).toContain('img "Distribution of the absolute error of logits');
      expect(await page.locator('svg[role=img] > title').count()).toBe(9);
      expect(await page.locator('table:not(:has(th[scope=row]))').count()).toBe(0);
    });
  });

  test('every figure and every table is numbered', async () => {
    await open('pass', {}, async (page) => {
      const numbers = await page.evaluate(captionNumbers);
      expect(numbers.filter((number) => number.startsWith('"Figure "')).length).toBe(6);
      expect(numbers.filter((number) => number.startsWith('"Table "')).length).toBe(8);
      expect(numbers.length).toBe(14);
    });
  });

  test('the list of nodes that stay in FP32 opens without a script', async () => {
    await open('pass', {}, async (page) => {
      const node = page.getByText('/stem/GlobalAveragePool', { exact: true });
      expect(await node.isVisible()).toBe(false);
      await page.locator('summary', { hasText: '--max-reduction-depth' }).click();
      expect(await node.isVisible()).toBe(true);
    });
  });

  test('a command is selected whole by one click, without a script', async () => {
    await open('pass', { javaScriptEnabled: false }, async (page) => {
      expect(await page.locator('.copy').isVisible()).toBe(false);
      await page.locator('pre.command').click();
      expect(await page.evaluate(selectedText)).toBe(passed.repeat);
    });
  });

  test.each([390, 1280])('the keyboard alone copies the very line, %i px wide', async (width) => {
    const permissions = ['clipboard-read', 'clipboard-write'];
    await open('fail', { width, permissions }, async (page) => {
      const focused = page.locator('.copy:focus');
      for (let tabs = 0; tabs < 50 && (await focused.count()) === 0; tabs++) await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await expect.poll(() => focused.textContent()).toBe('Copied');
      expect(await page.evaluate(clipboardText)).toBe(`${failedSample().repeat} --heal`);
      await page.keyboard.press('Tab');
      expect(await page.locator('.copy').first().textContent()).toBe('Copy');
    });
  });

  test('where a browser forbids the clipboard the line is selected', async () => {
    await open('fail', {}, async (page) => {
      await page.evaluate(forbidClipboard);
      const button = page.locator('.copy').first();
      await button.click();
      await expect.poll(() => button.textContent()).toBe('Selected');
      expect(await page.evaluate(selectedText)).toBe(`${failedSample().repeat} --heal`);
    });
  });

  test('no script but the page’s own runs', async () => {
    const own = '<script>document.title = "owned"</script></body>';
    writeFileSync(join(folder, 'injected.html'), pages.pass!.replace('</body>', own));
    const page = await browser.newPage();
    await page.goto(pathToFileURL(join(folder, 'injected.html')).href);
    expect(await page.title()).not.toBe('owned');
    expect(await page.locator('.copy').first().isVisible()).toBe(true);
    await page.close();
  });

  test.each([390, 1280])('the line that goes on is one line of code, %i px wide', async (width) => {
    await open('fail', { width }, async (page) => {
      const line = page.locator('.verdict pre.command');
      await line.click();
      expect(await page.evaluate(selectedText)).toBe(`${failedSample().repeat} --heal`);
      expect((await line.locator('code').boundingBox())!.height).toBeLessThan(24);
    });
  });

  test('a bar is as long as its share of the limit', async () => {
    await open('bundle', {}, async (page) => {
      const chart = page.locator('svg.chart', { hasText: 'of the limit' }).first();
      const full = (await chart.locator('rect.track').first().boundingBox())!.width;
      const [{ components, drift_limit: limit } = sampleCheck()] = sampleBundle().checks;
      for (const [row, { relative_rms: error }] of components.entries()) {
        const mark = (await chart.locator('rect.mark').nth(row).boundingBox())!;
        expect(Math.abs(mark.width / full - error! / limit)).toBeLessThan(0.01);
      }
    });
  });

  test.each([390, 1280])('models of a fleet are unbroken names, %i px wide', async (width) => {
    await open('fleet', { width }, async (page) => {
      const names = page.locator('#engines tbody th code');
      for (const name of await names.all()) expect((await name.boundingBox())!.height).toBeLessThan(26);
    });
  });

  test.each([390, 1280])(
    'every engine of a fleet is seen without scrolling sideways, %i px wide',
    async (width) => {
      await open('fleet', { width }, async (page) => {
        const cells = page.locator('#engines tbody td');
        const { jobs } = sampleStatus();
        expect(await cells.count()).toBe(jobs.length);
        for (const [index, cell] of (await cells.all()).entries()) {
          const { x, width: own } = (await cell.boundingBox())!;
          expect(x).toBeGreaterThanOrEqual(0);
          expect(x + own).toBeLessThanOrEqual(width);
          expect(await cell.textContent()).toContain(jobs[index]!.state);
          const shown = await cell.evaluate(columnShown);
          expect(shown).toBe(width === 390 ? `"${jobs[index]!.on}"` : 'none');
        }
      });
    },
  );

  test.each([390, 1280])('the map of a fleet begins on the first screen, %i px wide', async (width) => {
    await open('fleet', { width }, async (page) => {
      expect((await page.locator('#engines tbody tr').first().boundingBox())!.y).toBeLessThan(900);
    });
  });

  test('a table that scrolls has a shade at the side where more is', async () => {
    await open('pass', { width: 390 }, async (page) => {
      const { x, y, width } = (await page.locator('#accuracy .scroll').first().boundingBox())!;
      const clip = { x: x + width - 6, y: y + 2, width: 6, height: 14 };
      const before = await page.screenshot({ clip, fullPage: true });
      await page.evaluate(scrollToEnd);
      expect((await page.screenshot({ clip, fullPage: true })).equals(before)).toBe(false);
    });
  });

  test('it prints to a PDF with every folded part open', async () => {
    await open('pass', {}, async (page) => {
      await page.emulateMedia({ media: 'print' });
      expect(await page.locator('nav').isVisible()).toBe(false);
      const pdf = await page.pdf({ format: 'A4' });
      expect(pdf.subarray(0, 5).toString()).toBe('%PDF-');
    });
  });
});
