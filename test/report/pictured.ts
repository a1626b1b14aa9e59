import { createHash } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import type { WorstSample } from '../../src/quality/verify/result.js';
import type { ForgeResult } from '../../src/report/forge-result.js';
import { sampleResult } from './sample.js';
import { toneFile } from './tone.js';

/** A run with a blue picture of 600 by 400 on which the candidate loses a box, a class that turns, a map of classes, a recording, and one that both hear otherwise. */
export async function pictured(): Promise<ForgeResult> {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-pictured-'));
  const file = join(folder, 'blue "street" <1>.png');
  const background = { r: 20, g: 20, b: 200 };
  const bytes = await sharp({ create: { width: 600, height: 400, channels: 3, background } })
    .png()
    .toBuffer();
  writeFileSync(file, bytes);
  const picture = {
    ...{ file, sha256: createHash('sha256').update(bytes).digest('hex') },
    ...{ size: { width: 600, height: 400 }, share: 1.4 },
  };
  const box = (label: string, left: number, alone: boolean) => ({
    ...{
      label,
      score: 0.87,
      alone,
      ...(alone && {
        mask: {
          columns: 2,
          rows: 1,
          runs: [
            [1, 1],
            [0, 1],
          ] as [number, number][],
        },
      }),
    },
    box: [left, 120, 150, 200] as [number, number, number, number],
  });
  const area = { left: 0, top: -100, width: 600, height: 600 };
  const mask = { kind: 'mask', area, columns: 2, rows: 2, labels: ['road', 'a <b>car</b>'] } as const;
  const worstSamples: WorstSample[] = [
    {
      ...{ ...picture, sample: 4, lost: 1, new: 0 },
      reference: { kind: 'boxes', boxes: [box('dog', 40, true), box('bicycle', 300, false)] },
      candidate: { kind: 'boxes', boxes: [box('bicycle', 302, false)] },
    },
    {
      ...{ ...picture, sample: 2, lost: 1, new: 1 },
      reference: { kind: 'class', label: 'tabby', probability: 0.8 },
      candidate: { kind: 'class', label: 'lynx', probability: 0.41 },
    },
    {
      ...{ ...picture, sample: 9, lost: 1, new: 1 },
      reference: {
        ...mask,
        labels: [...mask.labels],
        runs: [
          [0, 2],
          [1, 2],
        ],
      },
      candidate: {
        ...mask,
        labels: [...mask.labels],
        runs: [
          [0, 3],
          [1, 1],
        ],
      },
    },
    {
      ...{ ...toneFile(folder), size: null, sample: 0, share: 0.2, lost: 0, new: 0 },
      ...{ reference: null, candidate: null },
    },
    {
      ...{ ...toneFile(folder), size: null, sample: 1, share: null, lost: 1, new: 1 },
      reference: { kind: 'text', text: 'the <b>quick</b> brown fox' },
      candidate: { kind: 'text', text: 'the thick brown fox' },
    },
  ];
  const result = sampleResult();
  return { ...result, verification: { ...result.verification!, worstSamples } };
}
