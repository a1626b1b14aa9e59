import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type VerifyResult, verifyResultSchema } from '../../../src/quality/verify/result.js';
import { floats, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { detector, paintCells } from '../../products/evaluation/detection/coloured-cells.js';
import { trtforge } from '../../support/trtforge.js';

const paths: Record<'reference' | 'close' | 'far' | 'constant', string> = {
  reference: '',
  close: '',
  far: '',
  constant: '',
};

beforeAll(async () => {
  for (const [name, weight] of Object.entries({ reference: 2, close: 2.000001, far: 3, constant: 0 })) {
    paths[name as keyof typeof paths] = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.initializer('w', floats('float32', [], [weight]));
      graph.node('Mul', { inputs: ['x', 'w'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 4]);
    });
  }
});

const verify = (candidate: string, ...args: string[]) =>
  trtforge(['verify', candidate, '--samples', '1', '--threads', '1', ...args]);

describe('trtforge verify', () => {
  it('prints inputs with their reasons, statistics of each output, the verdict and how to repeat it', async () => {
    const { exitCode, out } = await verify(paths.close, '--against', paths.reference, '--shapes', 'x:3x4');
    expect(exitCode).toBe(0);
    expect(out).toMatch(/x {2}float32 \[3, 4\] {2}normal, mean 0, deviation 1/);
    expect(out).toMatch(/pass {2}y {2}float32 \[3, 4\], 12 elements/);
    expect(out).toMatch(/max [\d.e-]+, mean/);
    expect(out).toMatch(/To repeat: trtforge verify .* --shapes x:3x4/);
  });

  it('--report writes a page with where the error is', async () => {
    const page = join(mkdtempSync(join(tmpdir(), 'trtforge-verify-')), 'verify.html');
    const { json } = await verify(paths.far, '--against', paths.reference, '--report', page, '--json');
    const { errorMap, outputs } = json<VerifyResult>();
    expect(outputs.map(({ name }) => name)).toContain(errorMap?.tensor);
    expect(readFileSync(page, 'utf8')).toContain(`Error of ${errorMap?.tensor}`);
  });

  it('--report has the worst pictures, and so has the page that report makes of the result', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-verify-'));
    const at = (name: string) => join(folder, name);
    await paintCells(folder);
    const candidate = await detector(undefined, [64, 64], [1, 0.2, 1]);
    const options = ['--inputs', at('images'), '--preprocess', 'yolo', '--report', at('page.html'), '--json'];
    const { json, out } = await trtforge(['verify', candidate, '--against', await detector(), ...options]);
    expect(json<VerifyResult>().worstSamples?.map(({ lost }) => lost)).toEqual([1, 0]);
    writeFileSync(at('verify.json'), out);
    await trtforge(['report', at('verify.json'), '-o', at('again.html')]);
    for (const name of ['page.html', 'again.html']) {
      const page = readFileSync(at(name), 'utf8');
      expect([...page.matchAll(/<image id="picture-/g)]).toHaveLength(2);
      expect(page).toContain('green 1 (lost)');
    }
  });

  it.each([
    ['close', 0, 'pass'],
    ['far', 1, 'fail'],
  ] as const)('exits by its verdict: %s is %i', async (name, code, outcome) => {
    const { exitCode, json } = await verify(paths[name], '--against', paths.reference, '--json');
    expect(exitCode).toBe(code);
    const answer = json();
    expect(answer).toMatchObject({ ok: code === 0, exitCode: code, command: 'verify', outcome });
    expect(verifyResultSchema.safeParse(answer).success).toBe(true);
  });

  it('exits with 4 when nothing can be decided', async () => {
    const { exitCode, out } = await verify(paths.constant, '--against', paths.constant);
    expect(exitCode).toBe(4);
    expect(out).toContain('would accept zeros');
  });

  it('runs the command that it prints for repeating', async () => {
    const words = [
      '--against',
      paths.reference,
      '--atol',
      'y:0.5',
      '--rtol',
      '0.25',
      '--val-range',
      'x:[0,1]',
      '--json',
    ];
    const first = (await verify(paths.far, ...words)).json<{ repeat: string }>();
    const again = first.repeat.replaceAll("'", '').split(' ').slice(3);
    const second = (await verify(paths.far, ...again)).json<{ repeat: string }>();
    expect({ ...second, repeat: first.repeat }).toEqual(first);
  });

  it.each([
    ['no reference', [], /--against/],
    ['an option of streams', ['--mode', 'functional'], /--mode/],
    ['samples that are not there', ['--inputs', 'q=@nothing.npy'], /nothing\.npy/],
    ['a nonsense tolerance', ['--atol', 'y:much'], /not a tolerance/],
  ])('rejects %s with exit 2', async (_case, words, message) => {
    const against = words.length === 0 ? [] : ['--against', paths.reference];
    const { exitCode, err } = await verify(paths.close, ...against, ...words);
    expect(exitCode).toBe(2);
    expect(err).toMatch(message);
  });
});
