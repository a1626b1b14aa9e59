import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { verifyResultSchema } from '../../../src/quality/verify/result.js';
import { floats, modelFile } from '../../engines/runtime/onnxruntime/models.js';

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

function verify(candidate: string, ...words: string[]) {
  const main = new URL('../../../dist/main.js', import.meta.url).pathname;
  const command = [main, 'verify', candidate, '--samples', '1', '--threads', '1', ...words];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

describe('trtforge verify', () => {
  it('prints inputs with their reasons, statistics of each output, the verdict and how to repeat it', () => {
    const { status, stdout } = verify(paths.close, '--against', paths.reference, '--shapes', 'x:3x4');
    expect(status).toBe(0);
    expect(stdout).toMatch(/x {2}float32 \[3, 4\] {2}normal, mean 0, deviation 1/);
    expect(stdout).toMatch(/pass {2}y {2}float32 \[3, 4\], 12 elements/);
    expect(stdout).toMatch(/max [\d.e-]+ +mean/);
    expect(stdout).toMatch(/To repeat: trtforge verify .* --shapes x:3x4/);
  });

  it.each([
    ['close', 0, 'pass'],
    ['far', 1, 'fail'],
  ] as const)('exits as its verdict says: %s is %i', (name, code, outcome) => {
    const { status, stdout } = verify(paths[name], '--against', paths.reference, '--json');
    expect(status).toBe(code);
    const answer = JSON.parse(stdout) as Record<string, unknown>;
    expect(answer).toMatchObject({ ok: code === 0, exitCode: code, command: 'verify', outcome });
    expect(verifyResultSchema.safeParse(answer).success).toBe(true);
  });

  it('exits with 4 when nothing can be said', () => {
    const { status, stdout } = verify(paths.constant, '--against', paths.constant);
    expect(status).toBe(4);
    expect(stdout).toContain('equal outputs show nothing');
  });

  it('runs the command that it gives for repeating', () => {
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
    const first = JSON.parse(verify(paths.far, ...words).stdout) as { repeat: string };
    const again = first.repeat.replaceAll("'", '').split(' ').slice(3);
    const second = JSON.parse(verify(paths.far, ...again).stdout) as { repeat: string };
    expect({ ...second, repeat: first.repeat }).toEqual(first);
  });

  it.each([
    ['no reference', [], /--against/],
    ['an option of streams', ['--mode', 'functional'], /--mode/],
    ['an unknown input', ['--inputs', 'q=@nothing.npy'], /no input «q»/],
    ['a nonsense tolerance', ['--atol', 'y:much'], /not a tolerance/],
  ])('refuses %s with exit 2', (_case, words, message) => {
    const against = words.length === 0 ? [] : ['--against', paths.reference];
    const { status, stderr } = verify(paths.close, ...against, ...words);
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
  });
});
