import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, describe, expect, test } from 'vitest';
import type { VerifyResult, WorstSample } from '../../src/quality/verify/result.js';
import { forgeReport } from '../../src/report/pages/forge.js';
import { picturesOf, renderReport } from '../../src/report/pages/report.js';
import { verifyReport } from '../../src/report/pages/verify.js';
import { sampleResult } from './sample.js';
import { toneFile } from './tone.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-pictures-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const HOSTILE = `x"><img src=q onerror=alert(1)><text>\u202e\\'.png`;

/** A picture of noise, which no JPEG makes small, as a sample on which the candidate loses a box. */
async function sampleOf(name: string, side: number, more: Partial<WorstSample> = {}): Promise<WorstSample> {
  const raw = { width: side, height: side, channels: 3 } as const;
  const bytes = await sharp(randomBytes(3 * side ** 2), { raw })
    .png()
    .toBuffer();
  const file = join(folder, name);
  writeFileSync(file, bytes);
  const box = { label: HOSTILE, score: 0.9, box: [1, 2, 3, 4] as [number, number, number, number] };
  return {
    ...{ sample: 0, file, sha256: createHash('sha256').update(bytes).digest('hex') },
    ...{ size: { width: side, height: side }, share: 1.5, lost: 1, new: 0 },
    reference: { kind: 'boxes', boxes: [{ ...box, alone: true }] },
    candidate: { kind: 'boxes', boxes: [] },
    ...more,
  };
}

const verified = (worstSamples: WorstSample[]): VerifyResult => ({
  ...sampleResult().verification!,
  worstSamples,
});

async function pageOf(worstSamples: WorstSample[]): Promise<string> {
  const report = { kind: verifyReport, result: verified(worstSamples) };
  return renderReport(report, 'html', [], await picturesOf(report, 'html')).content;
}

const imagesIn = (page: string) => [...page.matchAll(/<image [^>]*href="data:image\/jpeg;base64,([^"]*)"/g)];

describe('the page of a comparison', () => {
  test('has each picture once and small, and what both sides state drawn over it and in words', async () => {
    const sample = await sampleOf(HOSTILE.replace('/', ''), 900);
    const page = await pageOf([sample, { ...sample, sample: 1 }]);
    const [[, base64] = [], ...others] = imagesIn(page);
    expect(others).toEqual([]);
    expect(await sharp(Buffer.from(base64!, 'base64')).metadata()).toMatchObject({ width: 480, height: 480 });
    expect([...page.matchAll(/<use href="#picture-/g)]).toHaveLength(4);
    expect([...page.matchAll(/<rect x="1" y="2" width="3" height="4"/g)]).toHaveLength(2);
    expect(page).toContain('(lost)');
    expect(page).toMatch(/<\/strong> no box/);
  });

  test('names of files and labels open nothing, and the policy stays as strict', async () => {
    const page = await pageOf([await sampleOf(HOSTILE.replace('/', ''), 8)]);
    expect(page).not.toMatch(/<img|<text>/);
    expect(page).not.toContain('\u202e');
    const [, policy] = /Content-Security-Policy" content="([^"]*)"/.exec(page)!;
    expect(policy!.replaceAll('&#39;', "'")).toMatch(
      /^default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+'; img-src data:; base-uri 'none'/,
    );
  });

  test('a file that is gone, changed or no picture is named, and the boxes stay', async () => {
    const gone = await sampleOf('gone.png', 8);
    const changed = await sampleOf('changed.png', 8);
    const broken = await sampleOf('broken.png', 8);
    rmSync(gone.file);
    writeFileSync(changed.file, 'other');
    writeFileSync(broken.file, 'text');
    const sha256 = createHash('sha256').update('text').digest('hex');
    const page = await pageOf([gone, changed, { ...broken, sha256 }]);
    expect(imagesIn(page)).toEqual([]);
    for (const { file } of [gone, changed, broken])
      expect(page.match(new RegExp(`${file}[^<]*</code>[^<]*${file}`, 's')), file).not.toBeNull();
    expect([...page.matchAll(/<rect x="1"/g)]).toHaveLength(3);
  });

  test('pictures take two megabytes of a page at most', async () => {
    const all: WorstSample[] = [];
    for (let at = 0; at < 24; at++) all.push(await sampleOf(`noise-${at}.png`, 480));
    const page = await pageOf(all);
    const bytes = imagesIn(page).reduce((sum, [, base64]) => sum + base64!.length, 0);
    expect(bytes).toBeLessThanOrEqual(2e6);
    expect(imagesIn(page).length).toBeGreaterThanOrEqual(12);
    expect(imagesIn(page).length).toBeLessThan(24);
  });

  test('a recording is an outline', async () => {
    const { file, sha256 } = toneFile(folder);
    const none = { reference: null, candidate: null, lost: 0, new: 0 };
    const page = await pageOf([{ sample: 0, file, sha256, size: null, share: 0.5, ...none }]);
    const [, path] = /<svg class="sound"[^>]*>.*?<path d="([^"]*)"/s.exec(page)!;
    expect(path!.split('M')).toHaveLength(481);
  });

  test('a class and a mask are drawn', async () => {
    const label = await sampleOf('class.png', 8, {
      reference: { kind: 'class', label: 'tabby', probability: 0.75 },
      candidate: { kind: 'class', label: 'lynx', probability: 0.5 },
    });
    const area = { left: 0, top: 0, width: 8, height: 8 };
    const mask = { kind: 'mask', area, columns: 2, rows: 2, labels: ['road', 'car'] } as const;
    const places = await sampleOf('mask.png', 8, {
      reference: { ...mask, labels: ['road'], runs: [[0, 4]] },
      candidate: {
        ...mask,
        labels: ['road', 'car'],
        runs: [
          [0, 3],
          [1, 1],
        ],
      },
    });
    const page = await pageOf([label, places]);
    expect(page).toMatch(/>tabby<\/text>/);
    expect(page).toContain('lynx 50');
    expect(page).toContain('d="M0 0h8v4h-8zM0 4h4v4h-4z"');
    expect(page).toContain('d="M4 4h4v4h-4z"');
  });
});

test('a run of forge has its pictures; Markdown has a table of them, and the JSON no pixel', async () => {
  const sample = await sampleOf('forged.png', 8);
  const result = { ...sampleResult(), verification: verified([sample]) };
  const report = { kind: forgeReport, result };
  const pictures = await picturesOf(report, 'html');
  const { content } = renderReport(report, 'html', [], pictures);
  expect(imagesIn(content)).toHaveLength(1);
  expect(JSON.stringify(result)).not.toContain('data:');
  const markdown = renderReport(report, 'markdown').content;
  expect(markdown).toMatch(/\| sample \| share of the limit \| original \| candidate \|/);
  expect(markdown).toMatch(/forged\.png` \| 1\.5 \| 1 box: .* \| no box \|/);
  expect((await picturesOf(report, 'markdown')).size).toBe(0);
});
