import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { deathOf } from '../../../src/base/process/supervise.js';
import { TrtforgeError } from '../../../src/errors.js';
import { type EventListener, ignoreEvents, type LogSeverity } from '../../../src/events.js';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { explaining, issuesOf } from '../../../src/quality/explain/failure.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-failure-'));
afterAll(() => rmSync(folder, { recursive: true }));

const says = (emit: EventListener, severity: LogSeverity, message: string) =>
  emit({ type: 'log', source: 'tensorrt', severity, message });

/** The error that comes out when work says these lines and then throws. */
async function failure(
  thrown: unknown,
  lines: readonly (readonly [LogSeverity, string])[] = [],
  model?: string,
): Promise<TrtforgeError> {
  const work = async (emit: EventListener) => {
    for (const [severity, message] of lines) says(emit, severity, message);
    throw thrown;
  };
  return explaining(work, { emit: ignoreEvents, model }).then(
    () => expect.unreachable(),
    (error: TrtforgeError) => error,
  );
}

describe('a failed build', () => {
  const line = 'Error Code 10: Could not find any implementation for node /maxpool/MaxPool.';
  const refused = new TrtforgeError('TF_BUILD_FAILED', 'TensorRT could not build m.onnx.', {
    details: { lastLines: [line] },
  });

  it('states what is known of the lines before it, in details and remedy', async () => {
    const error = await failure(refused, [
      ['warning', 'Skipping tactic 3 due to insufficient memory on requested size of 430'],
      ['error', 'Requested amount of GPU memory (8589934592 bytes) could not be allocated.'],
    ]);
    expect(error).toMatchObject({ code: 'TF_BUILD_FAILED', message: refused.message, exitCode: 2 });
    expect(issuesOf(error).map(({ id, severity }) => [id, severity])).toEqual([
      ['gpu-out-of-memory', 'error'],
      ['tactic-skipped-memory', 'note'],
      ['no-implementation', 'note'],
    ]);
    expect(error.remedy).toMatch(/The GPU has no room .* Stop other processes/);
    expect(error.details?.lastLines).toEqual(refused.details?.lastLines);
  });

  it('counts a line once that the error repeats', async () => {
    const error = await failure(refused, [['error', line]]);
    expect(issuesOf(error)).toMatchObject([{ id: 'no-implementation', count: 1 }]);
  });

  it('names the nodes of the model and what is suspicious among them', async () => {
    const graph = new GraphBuilder('g');
    graph.input('x', 'float32', ['n', 8]);
    graph.node('Relu', { inputs: ['x'], outputs: ['a'], name: 'first' });
    graph.node('Softmax', { inputs: ['a'], outputs: ['b'], name: 'middle' });
    graph.node('Neg', { inputs: ['b'], outputs: ['y'], name: 'last' });
    graph.output('y', 'float32', null);
    const model = join(folder, 'm.onnx');
    await writeModel(buildModel(graph), model);
    const region = 'Could not find any implementation for node {ForeignNode[first...last]}.';
    const error = await failure(new TrtforgeError('TF_BUILD_FAILED', region), [], model);
    expect(issuesOf(error)[0]).toMatchObject({
      id: 'no-implementation-foreign-node',
      model: { found: 'path', total: 3, operators: { Relu: 1, Softmax: 1, Neg: 1 } },
    });
    expect(error.remedy).toMatch(/3 nodes lie on the way: .* Look at middle: Attention/);
  });

  it('keeps its own remedy where nothing is known, and where only warnings are', async () => {
    const unknown = new TrtforgeError('TF_BUILD_FAILED', 'x');
    expect(await failure(unknown)).toBe(unknown);
    const warned = await failure(unknown, [
      ['warning', 'Detected invalid timing cache, setup a local cache instead'],
    ]);
    expect(warned.remedy).toBe(unknown.remedy);
    expect(issuesOf(warned)).toMatchObject([{ id: 'timing-cache-rejected', severity: 'warning' }]);
  });

  it.each(['TF_CANCELLED', 'TF_USAGE', 'TF_INTERNAL', 'TF_GPU_UNAVAILABLE', 'TF_FILE_NOT_FOUND'] as const)(
    '%s is no failure of the library',
    async (code) => {
      const thrown = new TrtforgeError(code, 'out of memory std::bad_alloc');
      expect(await failure(thrown, [['error', 'std::bad_alloc']])).toBe(thrown);
    },
  );

  it('that is not an error of ours comes out as it went in', async () => {
    const thrown = new Error('std::bad_alloc');
    expect(await failure(thrown)).toBe(thrown);
  });
});

describe('a child that died', () => {
  it.each([
    ['SIGSEGV', /was killed by SIGSEGV, a crash inside the library or the driver/],
    ['SIGABRT', /the library ending the process itself/],
    ['SIGKILL', /the kernel's out-of-memory killer/],
  ] as const)('of %s: the signal and the last line are reported', async (signal, cause) => {
    const error = await failure(deathOf('building m.onnx', ['Loaded engine size: 5 MiB'], null, signal));
    expect(issuesOf(error)).toMatchObject([
      {
        id: 'process-died',
        cause: expect.stringMatching(cause),
        lines: [{ line: 1, text: 'Loaded engine size: 5 MiB' }],
      },
    ]);
    expect(issuesOf(error)[0]?.cause).toContain('"Loaded engine size: 5 MiB"');
    expect(error.code).toBe('TF_CHILD_DIED');
  });

  it('of the cause in its last lines: that cause has the remedy', async () => {
    const lines = [
      '[11/20/2026-10:00:00] [E] [TRT] createCaskKernelLibraryImpl: Assertion validateCaskKLibSize failed',
    ];
    const error = await failure(deathOf('building m.onnx', lines, null, 'SIGABRT'));
    expect(issuesOf(error).map(({ id }) => id)).toEqual(['installation-mixed', 'process-died']);
    expect(error.remedy).toMatch(/libnvinfer_builder_resource\) is not the one of this libnvinfer/);
  });
});

describe('work that goes well', () => {
  it('gives its result, its events, and what its lines hide', async () => {
    const heard: string[] = [];
    const { result, issues } = await explaining(
      async (emit) => {
        emit({ type: 'phase-start', phase: 'build' });
        says(emit, 'info', 'Memory Pools: workspace: 0.03125 MiB, dlaSRAM: default');
        says(emit, 'verbose', 'std::bad_alloc');
        return 7;
      },
      { emit: (event) => heard.push(event.type) },
    );
    expect(result).toBe(7);
    expect(issues).toMatchObject([{ id: 'workspace-parsed-tiny', severity: 'error' }]);
    expect(heard).toEqual(['phase-start', 'log', 'log']);
  });
});
