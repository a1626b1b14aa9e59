import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { explainLines } from '../../../src/quality/explain/explain.js';
import { knownIssues } from '../../../src/quality/explain/known-issues/index.js';

const explained = (...lines: readonly string[]) => explainLines('log', lines);

/** What a run that passed shows of these lines: each issue with its severity. */
function ofPassedRun(version: number, flags: string, lines: readonly string[]) {
  const { issues } = explained(
    `&&&& RUNNING TensorRT.trtexec [TensorRT v${version}] # trtexec --onnx=m.onnx${flags}`,
    ...lines,
    `&&&& PASSED TensorRT.trtexec [TensorRT v${version}] # trtexec --onnx=m.onnx${flags}`,
  );
  return issues.map(({ id, severity }) => `${id}: ${severity}`);
}

describe('lines that alarm, of runs that are fine', () => {
  it.each<[string, number, string, readonly string[], readonly string[]]>([
    [
      'every int64 binding is named by a warning',
      100600,
      '',
      [
        '[W] [TRT] ModelImporter.cpp:420: Make sure input input_ids has Int64 binding.',
        '[W] [TRT] ModelImporter.cpp:680: Make sure output label has Int64 binding.',
      ],
      ['int64-binding: note'],
    ],
    [
      'an operator that a plug-in gives has no importer',
      8601,
      '',
      [
        '[I] [TRT] No importer registered for op: ScatterND. Attempting to import as plugin.',
        '[I] [TRT] Searching for plugin: ScatterND, plugin_version: 1, plugin_namespace: ',
        '[I] [TRT] Successfully created plugin: ScatterND',
      ],
      [],
    ],
    [
      'a plug-in is looked for under two names',
      110100,
      '',
      [
        '[I] [TRT] Plugin not found with node attribute namespace: using pluginName: Foo, pluginVersion: 1, pluginNamespace: ',
        '[I] [TRT] Searching for plugin with node domain namespace: using pluginName: Foo, pluginVersion: 1, pluginNamespace: acme',
      ],
      [],
    ],
    [
      'a tactic finds no room, which is printed as three lines, one of them an error',
      100600,
      '',
      [
        '[W] [TRT] Requested amount of GPU memory (2833252352 bytes) could not be allocated. There may not be enough free memory for allocation to succeed.',
        '[W] [TRT] UNSUPPORTED_STATE: Skipping tactic 28 due to insufficient memory on requested size of 2833252352 detected for tactic 0x0000000204040736.',
        '[E] [TRT] [virtualMemoryBuffer.cpp::nvinfer1::StdVirtualMemoryBufferImpl::resizePhysical::154] Error Code 2: OutOfMemory (Requested size was 2833252352 bytes.)',
      ],
      ['gpu-out-of-memory: warning', 'tactic-skipped-memory: note', 'tactic-skipped-device-memory: note'],
    ],
    [
      'tactics are left out for any reason',
      8601,
      '',
      [
        '[W] [TRT] Skipping tactic 0 due to Myelin error: myelinTargetSetPropertyMemorySize called with invalid memory size (0).',
        '[E] Error Code: 9: Skipping tactic 0x0000000000000000 due to exception cudaEventElapsedTime',
      ],
      ['tactic-skipped-exception: note'],
    ],
    [
      'INT8 of a model with Q/DQ nodes',
      100600,
      ' --int8 --fp16',
      [
        "[W] [TRT] Calibrator won't be used in explicit quantization mode. Please insert Quantize/Dequantize layers to indicate which tensors to quantize/dequantize.",
      ],
      [],
    ],
    [
      'the same before 9',
      8601,
      ' --int8',
      ["[W] [TRT] Calibrator won't be used in explicit precision mode. Use quantization aware training"],
      [],
    ],
    ['mebibytes are mebibytes on 8.6 too', 8601, ' --memPoolSize=workspace:32768M', [], []],
    ['and so spelt out', 8601, ' --memPoolSize=workspace:32768MiB', [], []],
    [
      'a tensor called K with the size TopK is limited to',
      100600,
      '',
      ['[I] Input binding for K with dimensions [1,3840] and type fp32 is created.'],
      [],
    ],
  ])('%s', (_what, version, flags, lines, expected) => {
    expect(ofPassedRun(version, flags, lines)).toEqual(expected);
  });

  it('a library that only plug-ins need, on a machine without it', () => {
    const line =
      'libnvinfer_plugin.so.8 cannot be loaded: libcudnn.so.8: cannot open shared object file: No such file or directory. Models that need its plug-ins will not build.';
    expect(ofPassedRun(8601, '', [line])).toEqual(['library-not-found: warning']);
    expect(explained(line).issues).toMatchObject([{ id: 'library-not-found', severity: 'error' }]);
  });

  it('whatever they are: a run that passed shows errors only where success is known to hide them', () => {
    const hidden = knownIssues.filter(({ hiddenBySuccess }) => hiddenBySuccess).map(({ id }) => id);
    expect(hidden.toSorted()).toEqual([
      'int8-random-ranges',
      'plan-empty',
      'shapes-overridden',
      'workspace-parsed-tiny',
      'workspace-suffix-ignored',
      'workspace-unit-bytes',
    ]);
    const line = '[E] [TRT] Cask Pooling Runner Execute Failure';
    expect(ofPassedRun(101500, '', [line])).toEqual(['multi-gpu-process: warning']);
    expect(explained(line).issues).toMatchObject([{ id: 'multi-gpu-process', severity: 'error' }]);
  });

  it('are errors where the run fails', () => {
    const line = '[E] [TRT] [resizingAllocator.cpp::allocate::78] Error Code 1: Cuda Runtime (out of memory)';
    const failed = '&&&& FAILED TensorRT.trtexec [TensorRT v100600] # trtexec';
    expect(explained(line, failed).issues).toMatchObject([{ id: 'gpu-out-of-memory', severity: 'error' }]);
  });
});

describe('the other forms of a fault', () => {
  it.each<[string, readonly string[]]>([
    ['[I] Memory Pools: workspace: 3.05176e-05 MiB, dlaSRAM: default', ['workspace-parsed-tiny']],
    [
      '[W] [TRT] TensorRT was linked against cuBLAS/cuBLAS LT 11.6.3 but loaded cuBLAS/cuBLAS LT 11.3.0',
      ['library-mismatch'],
    ],
    ['[W] [TRT]  - Subnormal FP16 values detected.', ['fp16-subnormal-weights']],
    [
      '[TRT] [E] 3: [layers.h::setK::1268] Error Code 3: API Usage Error (Parameter check failed at: optimizer/api/layers.h::setK::1268, condition: k > 0 && k <= MAX_TOPK_K',
      ['topk-too-many'],
    ],
    ['CUDA initialization failure with error: 350', ['cuda-initialization-failed']],
    ['CUDA initialization failure with error: 2. Please check your CUDA installation', ['gpu-out-of-memory']],
    ['[W] [TRT] Unable to determine GPU memory usage: out of memory', ['gpu-out-of-memory']],
    [
      'ModelImporter.cpp:151: ERROR: onnxOpCheckers.cpp:1233 In function checkSplitToSequence:',
      ['importer-assertion'],
    ],
    ['[6] Invalid Node - /model/TopK_2', ['importer-assertion']],
    [
      '[E] [TRT] ModelImporter.cpp:140: While parsing node number 3 [RMSNormalization -> "y"]:',
      ['rms-normalization-unknown'],
    ],
  ])('%s', (line, expected) => {
    expect(explained(line).issues.map(({ id }) => id)).toEqual(expected);
  });

  it('of a plug-in that is not there, as the parser of 1.7 (RTX) reports it: the node, and why', () => {
    const { issues } = explained(
      '[E] [TRT] ModelImporter.cpp:140: While parsing node number 0 [Foo -> "y"]:',
      '[E] [TRT] ModelImporter.cpp:142: --- Begin node ---',
      'Node name: my/foo',
      '[E] [TRT] ModelImporter.cpp:143: --- End node ---',
      '[E] [TRT] ModelImporter.cpp:151: ERROR: onnxOpCheckers.cpp:998 In function checkFallbackPluginImporter:',
      '[6] creator && "Plugin not found, are the plugin name, version, and namespace correct?"',
    );
    expect(issues.map(({ id }) => id)).toEqual(['node-rejected', 'plugin-not-found']);
  });
});

describe('harmless lines', () => {
  const folder = fileURLToPath(new URL('../../fixtures/trtexec-logs/', import.meta.url));
  const harmless = readdirSync(folder)
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
    .filter(
      (line) =>
        /^\[[^\]]+\] \[[IV]\]/.test(line) &&
        !/workspace: 0|size: 0 MiB|do not have sufficient workspace/.test(line),
    );

  it('of real runs match nothing', () => {
    expect(harmless.length).toBeGreaterThan(2000);
    expect(explained(...new Set(harmless)).issues).toEqual([]);
  });

  it('mixed at random, with names and numbers of any kind, match nothing', () => {
    const word = fc.oneof(
      fc.constantFrom(
        'Conv',
        'engine',
        'layer',
        'GPU',
        'tactic',
        'workspace',
        'profile',
        'input',
        'node',
        'kernel',
        'K',
        '/l.0/MatMul',
      ),
      fc.stringMatching(/^[a-z0-9_./]{1,12}$/),
      fc.integer().map(String),
    );
    const sentence = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(' '));
    const severity = fc.constantFrom('I', 'W', 'V');
    fc.assert(
      fc.property(fc.array(fc.tuple(severity, sentence), { maxLength: 20 }), (messages) => {
        const log = messages.map(([letter, text]) => `[11/20/2026-10:00:00] [${letter}] [TRT] ${text}`);
        expect(explained(...log).issues).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
