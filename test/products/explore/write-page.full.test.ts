import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { contrasts, isDrawn, pageWidth } from '../../report/probes.js';
import { axeFaults } from '../../support/axe.js';
import { launchChromium } from '../../support/browser.js';
import { describeWith } from '../../support/needs.js';
import { trtforge } from '../../support/trtforge.js';
import { madeLayers } from './made-layers.js';

const fixtures = join(import.meta.dirname, '../../fixtures');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-explore-page-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MANY = 5000;
/** Markup, a closing tag, a handler, a bidirectional override, an escape sequence, a line separator. */
const EVIL = `</script><img src=x onerror="document.title='owned'"><!--\u202eb\u001b[2J\u2028'"&{{x}}`;

async function written(page: string, ...words: readonly string[]): Promise<void> {
  const { exitCode, err } = await trtforge(['explore', ...words, '-o', at(page)]);
  expect(exitCode, err).toBe(0);
}

describeWith('chromium', 'the page of explore in Chromium', (executable) => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launchChromium(executable);
    const { layers, profile } = madeLayers(MANY);
    writeFileSync(at('many.json'), layers);
    writeFileSync(at('many.profile.json'), profile);
    await written('many.html', at('many.json'), '--from', at('many.profile.json'));
    const [a, b] = ['8.6', '10.6'].map((version) =>
      join(fixtures, 'engine-layers', `${version}-resnet50-fp16.json`),
    );
    const [timesA, timesB] = ['8.6-profile_b8', '10.6-profile_b32'].map((name) =>
      join(fixtures, 'trtexec-runs', `${name}.json`),
    );
    await written('one.html', b!, '--from', timesB!);
    await written('two.html', a!, b!, '--from', timesA!, '--from-b', timesB!);
    const hostile = JSON.parse(madeLayers(12).layers) as { Layers: Record<string, unknown>[] };
    for (const layer of hostile.Layers)
      Object.assign(layer, {
        Name: `${String(layer.Name)}${EVIL}`,
        LayerType: EVIL,
        TacticName: EVIL,
        [EVIL]: EVIL,
        __proto__: EVIL,
        Metadata: `[ONNX Layer: /a/${EVIL}/Conv]`,
        Outputs: [{ ...(layer.Outputs as object[])[0], 'Format/Datatype': EVIL }],
      });
    writeFileSync(at('hostile.json'), JSON.stringify(hostile));
    await written('hostile.html', at('hostile.json'));
  });
  afterAll(() => browser.close());

  interface Look {
    readonly scheme?: 'light' | 'dark';
    readonly width?: number;
  }

  /** Opens a page, which asks for nothing but itself and has nothing to complain of. */
  async function open(name: string, look: Look, see: (page: Page) => Promise<void>): Promise<void> {
    const context = await browser.newContext({
      colorScheme: look.scheme ?? 'light',
      viewport: { width: look.width ?? 1280, height: 800 },
    });
    const page = await context.newPage();
    const complaints: string[] = [];
    const requests: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => requests.push(request.url()));
    const url = pathToFileURL(at(name)).href;
    await page.goto(url);
    await see(page);
    expect(complaints).toEqual([]);
    expect(requests.filter((request) => request !== url && !request.startsWith('data:'))).toEqual([]);
    await context.close();
  }

  const current = (page: Page) => page.locator('tr[aria-selected="true"] th').textContent();
  const heading = (page: Page) => page.locator('.details h2').textContent();

  const looks = ['one.html', 'two.html', 'many.html', 'hostile.html'].flatMap((name) =>
    (['light', 'dark'] as const).flatMap((scheme) => [390, 1280].map((width) => ({ name, scheme, width }))),
  );
  test.each(looks)(
    '$name, $scheme, $width px: axe finds nothing, all is readable',
    async ({ name, ...look }) => {
      await open(name, look, async (page) => {
        expect(await page.evaluate(pageWidth)).toBeLessThanOrEqual(look.width);
        const views = await page.locator('[aria-label="Tables"] button').all();
        for (const view of views) {
          await view.click();
          expect(await axeFaults(page)).toEqual([]);
          const [lowest] = await page.evaluate(contrasts);
          expect(lowest!.ratio, lowest!.text).toBeGreaterThanOrEqual(4.5);
        }
      });
    },
  );

  test('the page without its data has at most 600 kB', () => {
    const page = readFileSync(at('many.html'), 'utf8');
    const data = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page)![1]!;
    expect(JSON.parse(data).sides[0].rows.length).toBe(MANY);
    expect(page.replace(/<script type="application\/json".*?<\/script>/gs, '').length).toBeLessThan(600_000);
  });

  test('of 5,000 layers those in the window alone are elements, and scrolling shows the rest', async () => {
    await open('many.html', {}, async (page) => {
      const grid = page.getByRole('grid');
      expect(await grid.getAttribute('aria-rowcount')).toBe(String(MANY + 1));
      const rows = page.locator('tbody:not([aria-hidden]) tr');
      expect(await rows.count()).toBeLessThan(80);
      for (const picture of ['.lanes', '.strip'])
        await expect.poll(() => page.locator(picture).evaluate(isDrawn)).toBe(true);
      await page.locator('.scroller').evaluate((box) => {
        box.scrollTop = 26 * 4000;
      });
      await expect.poll(() => page.locator('#line-4001').count()).toBe(1);
      expect(await page.locator('#line-4001').getAttribute('aria-rowindex')).toBe('4003');
      expect(await rows.count()).toBeLessThan(80);
    });
  });

  test('the keyboard alone reaches, opens, sorts, folds and searches', async () => {
    await open('many.html', {}, async (page) => {
      await page.getByRole('grid').focus();
      await page.keyboard.press('ArrowDown');
      expect(await current(page)).toBe('/stage0/block0/conv1/Conv + /stage0/block0/act1/Relu');
      await page.keyboard.press('End');
      expect(await current(page)).toContain(`/block${Math.floor((MANY - 1) / 6)}/`);
      await page.keyboard.press('Home');
      await page.keyboard.press('PageDown');
      await page.keyboard.press('Enter');
      expect(
        await page.evaluate(
          () =>
            (globalThis as unknown as { document: { activeElement: { textContent: string } } }).document
              .activeElement.textContent,
        ),
      ).toBe(await heading(page));
      await page.keyboard.press('Escape');
      await page.keyboard.press('ArrowUp');
      expect(await current(page)).toBe(await heading(page));
      await page.keyboard.press('/');
      await page.keyboard.type('block17/ add');
      await expect.poll(() => page.getByRole('grid').getAttribute('aria-rowcount')).toBe('2');
      await page.getByRole('searchbox').fill('');
      await page.getByLabel('Fold').selectOption('2');
      expect(await page.getByRole('grid').getAttribute('aria-rowcount')).toBe(
        String(Math.ceil(MANY / 6) + 1),
      );
      await page.getByRole('grid').focus();
      await page.keyboard.press('Home');
      await page.keyboard.press('ArrowRight');
      expect(await page.locator('#line-0').getAttribute('aria-expanded')).toBe('true');
      expect(await page.getByRole('grid').getAttribute('aria-rowcount')).toBe(
        String(Math.ceil(MANY / 6) + 7),
      );
    });
  });

  test('a press on a head sorts, the other way round, and back', async () => {
    await open('one.html', {}, async (page) => {
      const head = page.getByRole('columnheader', { name: /^Time/ });
      const firstTime = () => page.locator('#line-0 td').nth(1).textContent();
      await head.getByRole('button').click();
      expect(await head.getAttribute('aria-sort')).toBe('descending');
      expect(await firstTime()).toBe('64 µs');
      expect(await page.locator('.lanes').isVisible()).toBe(false);
      await head.getByRole('button').click();
      expect(await head.getAttribute('aria-sort')).toBe('ascending');
      await head.getByRole('button').click();
      expect(await head.getAttribute('aria-sort')).toBe('none');
      expect(await page.locator('.lanes').isVisible()).toBe(true);
    });
  });

  test('a click shows facts and the neighbourhood, and leads on to what reads it', async () => {
    await open('one.html', {}, async (page) => {
      await page.getByText('/maxpool/MaxPool', { exact: true }).first().click();
      expect(await heading(page)).toBe('/maxpool/MaxPool');
      const picture = page.locator('.picture svg');
      const before = await picture.locator('.node').count();
      await page.getByRole('button', { name: 'More' }).click();
      expect(await picture.locator('.node').count()).toBeGreaterThan(before);
      await page.locator('.tensors').nth(1).getByRole('button').first().click();
      expect(await heading(page)).toMatch(/^\/layer1\//);
      expect(await current(page)).toBe(await heading(page));
    });
  });

  test('two sides: groups beside each other, and columns by operator that add up', async () => {
    await open('two.html', {}, async (page) => {
      expect(await page.getByRole('columnheader').allTextContents()).toEqual(
        expect.arrayContaining(['Layers of A', 'Layers of B', 'Change', 'B - A']),
      );
      await page.getByRole('button', { name: 'By operator' }).click();
      const cells = await page
        .locator('.by-operator tbody tr')
        .evaluateAll((rows) =>
          rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent)),
        );
      const layers = cells.map((row) => Number(row[0]));
      expect(layers.at(-1)).toBe(layers.slice(0, -1).reduce((sum, each) => sum + each, 0));
    });
  });

  test('hostile names are text: nothing of them runs, and nothing hides', async () => {
    await open('hostile.html', {}, async (page) => {
      await page.locator('#line-0').click();
      expect(await page.title()).not.toContain('owned');
      expect(await page.locator('img').count()).toBe(0);
      const text = await page.locator('#app').textContent();
      expect(text).toContain('<img src=x onerror=');
      expect(text).toContain('\\u{202e}b\\u{1b}[2J');
      for (const hidden of ['\u202e', '\u001b']) expect(text).not.toContain(hidden);
    });
  });

  test('no script but the page’s own runs', async () => {
    const page = readFileSync(at('one.html'), 'utf8');
    writeFileSync(
      at('injected.html'),
      page.replace('</body>', '<script>document.title = "owned"</script></body>'),
    );
    const context = await browser.newContext();
    const opened = await context.newPage();
    await opened.goto(pathToFileURL(at('injected.html')).href);
    expect(await opened.title()).not.toBe('owned');
    expect(await opened.getByRole('grid').count()).toBe(1);
    await context.close();
  });
});
