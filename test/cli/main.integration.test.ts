import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { modelFile } from '../engines/runtime/onnxruntime/models.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const root = fileURLToPath(new URL('../../', import.meta.url));

let model: string;
beforeAll(async () => {
  model = await modelFile((graph) => {
    graph.input('x', 'float32', [1]);
    graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
    graph.output('y', 'float32', [1]);
  });
});

describe('the trtforge process', () => {
  test('prints the version of its package', () => {
    const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { version: string };
    expect(execFileSync(process.execPath, [main, '--version'], { encoding: 'utf8' })).toBe(`${version}\n`);
  });

  test('ends with the exit code of the result', () => {
    expect(spawnSync(process.execPath, [main, 'inspect', '/nowhere.onnx']).status).toBe(2);
  });

  test('lets its reader go: a closed pipe is no fault', () => {
    const { status, stderr } = spawnSync('sh', ['-c', `"${process.execPath}" "${main}" --help | true`], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  test.each([
    ['whoever reads the results', '| true'],
    ['whoever reads the errors', '2>&1 >/dev/null | true'],
  ])('ends with the exit code of the work when %s is gone', (_who, reader) => {
    const script = `"${process.execPath}" "${main}" inspect /nowhere.onnx --json ${reader}; echo "\${PIPESTATUS[0]}"`;
    expect(spawnSync('bash', ['-c', script], { encoding: 'utf8' }).stdout).toBe('2\n');
  });

  test('without another file to open it ends with an error of ours, not as a failed verdict', () => {
    const program = fileURLToPath(new URL('../../dist/trtforge.cjs', import.meta.url));
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-files-'));
    const taking = join(folder, 'taking.cjs');
    writeFileSync(
      taking,
      "setImmediate(() => { try { for (;;) require('node:fs').openSync('/dev/null'); } catch {} });",
    );
    const taken = (...words: string[]) => {
      const line = [process.execPath, '--require', taking, program, 'inspect', model, ...words];
      return spawnSync('sh', ['-c', 'ulimit -n 64; exec "$@"', 'sh', ...line], { encoding: 'utf8' });
    };
    const { status, stderr } = taken();
    expect([status, stderr]).toEqual([2, expect.stringContaining('error TF_FILE_UNREADABLE')]);
    expect(JSON.parse(taken('--json').stdout)).toMatchObject({
      ok: false,
      error: { code: 'TF_FILE_UNREADABLE' },
    });
    // The remedy.
    const raised = ['-c', 'ulimit -n 1024; exec "$@"', 'sh', process.execPath, program, 'inspect', model];
    expect(spawnSync('sh', raised).status).toBe(0);
    rmSync(folder, { recursive: true });
  });

  // Which of them Node lacks for a package, a pipe or a library depends on its version.
  test.each([23, 28, 32])('with %i open files no work ends as a fault of trtforge', (limit) => {
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-files-'));
    const file = join(folder, 'engines.yaml');
    writeFileSync(
      file,
      `store: ${folder}\ntargets: { t: { target: 'tensorrt@10.13.3.9:sm_90' } }\nmodels: [{ model: m.onnx }]\n`,
    );
    const program = fileURLToPath(new URL('../../dist/trtforge.cjs', import.meta.url));
    const limited = (...words: string[]) => {
      const line = ['-c', `ulimit -n ${limit}; exec "$@"`, 'sh', process.execPath, program, ...words];
      const { stdout } = spawnSync('sh', [...line, '--json'], { encoding: 'utf8' });
      const { ok, error } = JSON.parse(stdout);
      return ok ? 'ok' : error.code;
    };
    // Its model is not there, which the limit may hide.
    expect(['TF_FILE_UNREADABLE', 'TF_FILE_NOT_FOUND']).toContain(limited('fleet', 'plan', file));
    expect(['TF_FILE_UNREADABLE', 'ok']).toContain(
      limited('run', model, '--inputs', 'random', '--seed', '1'),
    );
    expect(['TF_FILE_UNREADABLE', 'ok']).toContain(limited('doctor'));
    rmSync(folder, { recursive: true });
  });

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'])(
    'stopped by %s while its modules load, it prints its JSON',
    (signal) => {
      // The compile cache is the first thing that main.js asks for: a signal comes at that very moment.
      const early = `import m from 'node:module'; m.enableCompileCache = () => process.kill(process.pid, '${signal}');`;
      const preload = `data:text/javascript,${encodeURIComponent(early)}`;
      const { status, stdout } = spawnSync(
        process.execPath,
        ['--import', preload, main, 'toolchain', 'list', '--json'],
        { encoding: 'utf8' },
      );
      expect(status).toBe(4);
      expect(JSON.parse(stdout)).toMatchObject({
        ok: false,
        exitCode: 4,
        command: 'toolchain list',
        error: { code: 'TF_CANCELLED' },
      });
    },
  );

  test('has a thread of libuv for each core, unless UV_THREADPOOL_SIZE has a number', () => {
    const cores = "require('node:os').availableParallelism = () => 12;";
    const count =
      "process.on('exit', () => console.error(require('node:fs').readdirSync('/proc/self/task').length));";
    const probe = join(mkdtempSync(join(tmpdir(), 'trtforge-threads-')), 'probe.cjs');
    writeFileSync(probe, cores + count);
    const started = fileURLToPath(new URL('../../dist/trtforge.cjs', import.meta.url));
    const threads = (UV_THREADPOOL_SIZE: string | undefined) => {
      const env = { ...process.env, UV_THREADPOOL_SIZE };
      const { stdout, stderr } = spawnSync(process.execPath, ['--require', probe, started, '--version'], {
        encoding: 'utf8',
        env,
      });
      expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
      return Number(stderr);
    };
    expect(threads(undefined) - threads('5')).toBe(7);
    rmSync(dirname(probe), { recursive: true });
  });

  test('reports that its output found no room', () => {
    const script = `"${process.execPath}" "${main}" --version > /dev/full`;
    const { status, stderr } = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
    expect(status).toBe(3);
    expect(stderr).toMatch(
      /^error TF_WRITE_FAILED The standard output could not be written: the disk is full\./,
    );
    expect(stderr).not.toContain('    at ');
  });
});
