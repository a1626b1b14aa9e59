import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { trtforge } from '../../../support/trtforge.js';
import { writeNet } from '../../../support/written-net.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-summary-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What the scripts that read the summary grep for. */
const grepped = (text: string) => ({
  input: /input_name:\s*(\S+)/.exec(text)?.[1],
  height: /height:\s*([0-9]+)/.exec(text)?.[1],
  width: /width:\s*([0-9]+)/.exec(text)?.[1],
});

describe('trtforge deepstream summary', () => {
  it.each([
    [['batch', 3, 224, 320], { input: 'image', height: '224', width: '320' }],
    [['batch', 3, 'h', 'w'], { input: 'image', height: undefined, width: undefined }],
    [['batch', 3, 224, null], { input: 'image', height: '224', width: undefined }],
    [['N', 480, 640, 3], { input: 'image', height: '480', width: '640' }],
    [['N', 3, 640, 3], { input: 'image', height: '640', width: '3' }],
    [['N', 3, 4, 480, 640], { input: 'image', height: undefined, width: undefined }],
    [['batch', 80], { input: 'image', height: undefined, width: undefined }],
  ] as const)('prints the summary so that its greps work: %j', async (shape, expected) => {
    const path = join(folder, `${shape.join('_')}.onnx`);
    await writeNet(path, shape);
    const text = (await trtforge(['deepstream', 'summary', path])).out;
    expect(grepped(text)).toEqual(expected);
    expect(text).toMatch(
      /^=== ONNX Model Info ===\nFile: .*\nOpset:\s+17\nIR ver:\s+8\nProducer: tests\nNodes:\s+2\n/,
    );
    expect(text).toContain('✓ ONNX model is valid');
  });

  it('prints dynamic sizes as the scripts expect them', async () => {
    const path = join(folder, 'dynamic.onnx');
    await writeNet(path, ['batch', 3, 'rows', null]);
    const text = (await trtforge(['deepstream', 'summary', path])).out;
    expect(text).toContain("  image: shape=['batch', 3, 'rows', ''], dtype=float32");
    expect(text).toContain(
      'height: DYNAMIC (symbol=rows)\nwidth: DYNAMIC (symbol=unknown)\nWARNING: Dynamic H/W',
    );
  });
});
