import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { renderIssues } from '../../../src/cli/text.js';
import {
  type ExplainResult,
  explainLog,
  explainResultSchema,
  readExplainable,
} from '../../../src/quality/explain/explain.js';
import { knownIssues } from '../../../src/quality/explain/known-issues/index.js';
import { plainColors } from '../../support/plain-colors.js';
import { refusal } from '../../support/refusal.js';

const folder = fileURLToPath(new URL('../../fixtures/trtexec-logs/', import.meta.url));
const explain = (name: string) => explainLog(join(folder, `${name}.log`));
const ids = (name: string) => explain(name).issues.map(({ id }) => id);

/** Explains text as a log of its own. */
function explainText(text: string | Uint8Array) {
  const temporary = mkdtempSync(join(tmpdir(), 'trtforge-explain-'));
  try {
    writeFileSync(join(temporary, 'log'), text);
    return explainLog(join(temporary, 'log'));
  } finally {
    rmSync(temporary, { recursive: true });
  }
}

describe('recorded logs are explained', () => {
  const weakTyped86 = ['fp16-subnormal-weights', 'int64-weights'];
  const recorded: readonly (readonly [string, string, readonly string[]])[] = [
    // Faults made on purpose.
    ['10.6-err_mempool_mib', 'passed', ['workspace-parsed-tiny', 'tactic-skipped-memory']],
    ['8.6-err_mempool_g', 'passed', ['workspace-suffix-ignored', ...weakTyped86]],
    ['10.6-err_no_shapes', 'passed', ['shapes-overridden']],
    ['10.6-err_other_version', 'passed', ['shape-missing-at-run', 'compute-time-unstable']],
    ['10.6-err_bad_input_name', 'failed', ['input-name-unknown']],
    ['8.6-err_bad_input_name', 'failed', ['input-name-unknown', 'int64-weights']],
    ['10.6-err_min_gt_max', 'failed', ['profile-not-ordered']],
    ['10.6-err_loadinputs_size', 'failed', ['input-file-size']],
    ['10.6-err_no_file', 'failed', ['model-file-missing']],
    ['10.6-err_trunc_onnx', 'failed', ['model-unreadable']],
    ['10.6-err_no_gpu', 'failed', ['no-gpu']],
    ['10.6-err_text_plan', 'failed', ['plan-corrupt']],
    ['8.6-err_text_plan', 'failed', ['plan-corrupt']],
    ['8.6-err_truncated_plan', 'failed', ['plan-corrupt']],
    ['10.6-err_vc_no_lean', 'failed', ['lean-runtime-missing']],
    ['10.6-err_workspace_flag', 'failed', ['option-removed']],
    ['10.6-err_unknown_flag', 'failed', ['option-unknown']],
    ['8.6-err_unknown_flag', 'failed', ['option-unknown']],
    ['10.6-err_ultralytics_header', 'died', ['process-died']],
    ['11.1-build', 'failed', ['builder-resource-missing']],
    ['11.1-build2', 'failed', ['installation-mixed', 'plan-empty']],
    ['11.1-err_lean_no_driver', 'failed', ['driver-too-old']],
    ['11.1-err_unknown_flag', 'failed', ['option-unknown']],
    // Runs that pass and are not what they seem.
    ['10.6-bench_seed_b1', 'passed', ['enqueue-bound', 'compute-time-unstable']],
    ['10.6-build_enc_fp16', 'passed', ['profile-not-self-consistent']],
    ['10.6-output_b1', 'passed', ['enqueue-bound']],
    ['8.6-profile_b8', 'passed', ['compute-time-unstable']],
    ['8.6-build_fp16', 'passed', [...weakTyped86, 'myelin-cache-line']],
    ['8.6-build_fp16_warm', 'passed', ['timing-cache-rejected', ...weakTyped86, 'myelin-cache-line']],
    // Good runs.
    ['10.6-bench_r50_b1', 'passed', []],
    ['10.6-bench_r50_b64', 'passed', []],
    ['10.6-bench_r50t_b1', 'passed', []],
    ['10.6-bench_transfers_graph_b1', 'passed', []],
    ['10.6-build_fp16', 'passed', []],
    ['10.6-build_fp16_warm', 'passed', []],
    ['10.6-build_typed', 'passed', []],
    ['10.6-build_vc_excluded', 'passed', []],
    ['10.6-planversion', 'passed', []],
    ['10.6-profile_b32', 'passed', []],
    ['8.6-bench_b1', 'passed', []],
  ];

  test.each(recorded)('%s: %s, %j', (name, outcome, expected) => {
    const result = explain(name);
    expect({
      outcome: result.outcome,
      issues: result.issues.map(({ id }) => id),
      unexplained: result.unexplained,
    }).toEqual({
      outcome,
      issues: expected,
      unexplained: [],
    });
    explainResultSchema.parse(result);
  });

  test.each(recorded)('%s: %s, and what failed has an error, what is well has none', (name, outcome) => {
    const isFault = outcome !== 'passed' || name.includes('err_');
    const errors = explain(name).issues.filter(({ severity }) => severity === 'error');
    if (outcome !== 'passed') expect(errors).not.toEqual([]);
    if (!isFault) expect(errors).toEqual([]);
  });

  test('none is left out of the table', () => {
    const logs = readdirSync(folder).flatMap((file) => (file.endsWith('.log') ? [file.slice(0, -4)] : []));
    expect(recorded.map(([name]) => name).toSorted()).toEqual(logs.toSorted());
  });

  test('a line printed as an error on a build that is fine is a note', () => {
    const result = explain('8.6-build_fp16');
    expect(result.outcome).toBe('passed');
    expect(result.issues.find(({ id }) => id === 'myelin-cache-line')).toMatchObject({
      severity: 'note',
      count: 1,
    });
    expect(ids('8.6-build_fp16_warm')[0]).toBe('timing-cache-rejected');
  });

  test('versions are read from the banner of every major', () => {
    expect(
      ['8.6-build_fp16', '10.6-build_typed', '11.1-build'].map((name) => explain(name).tensorrtVersion),
    ).toEqual(['8.6.1', '10.6.0', '11.1.0']);
  });

  test('what the log states is in the explanation', () => {
    expect(explain('10.6-err_mempool_mib').issues[0]?.cause).toContain('0.03125 MiB');
    expect(explain('10.6-err_bad_input_name').issues[0]?.cause).toContain('(nope)');
    expect(explain('10.6-err_no_file').issues[0]?.cause).toContain('missing.onnx is not there');
    // A builder resource of something else lay in its place.
    expect(explain('11.1-build2').issues[0]?.cause).toContain('libnvinfer_builder_resource');
    // The second build took 19 s, the first 63: only the compiler's part of the cache was refused.
    expect(explain('8.6-build_fp16_warm').issues[0]?.cause).toContain('still uses the rest');
    expect(explain('10.6-err_ultralytics_header').issues[0]?.remedy).toContain('foreign headers');
  });
});

describe('an explanation', () => {
  test('names the nodes behind a ForeignNode', () => {
    const result = explainText(
      '[11/20/2026-10:00:00] [E] Error[10]: IBuilder::buildSerializedNetwork: Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[/enc/Cast_2.../enc/Sigmoid]}.)\n',
    );
    expect(result.issues[0]).toMatchObject({ id: 'no-implementation-foreign-node' });
    expect(result.issues[0]?.cause).toContain('/enc/Cast_2.../enc/Sigmoid');
  });

  test('counts what repeats and lists unknown error lines', () => {
    const skipped =
      '[11/20/2026-10:00:00] [E] Error Code: 9: Skipping tactic 0x00000a due to exception x\n'.repeat(50);
    const result = explainText(
      `${skipped}[11/20/2026-10:00:01] [E] a new kind of trouble\r\n[11/20/2026-10:00:02] [E] Engine set up failed\n`,
    );
    expect(result.issues).toMatchObject([{ id: 'tactic-skipped-exception', severity: 'note', count: 50 }]);
    expect(result.issues[0]?.lines).toHaveLength(20);
    expect(result.unexplained).toEqual([
      { line: 51, text: '[11/20/2026-10:00:01] [E] a new kind of trouble' },
    ]);
  });

  test('holds two messages of one line, glued by two streams, apart', () => {
    const at = '[11/20/2026-10:00:00]';
    const result = explainText(
      `${at} [I] fine${at} [E] Cannot find input tensor with name "nope" in the network inputs!${at} [E] Specified optimization profiles must satisfy MIN<=OPT<=MAX.\n`,
    );
    expect(result.issues).toMatchObject([
      { id: 'input-name-unknown', count: 1 },
      { id: 'profile-not-ordered', count: 1 },
    ]);
  });

  test('of several runs is as bad as the worst of them, and no run excuses another', () => {
    const log = (name: string) => readFileSync(join(folder, `${name}.log`), 'utf8');
    const names = ['10.6-build_fp16', '10.6-err_vc_no_lean', '8.6-err_mempool_g', '10.6-bench_r50_b1'];
    const result = explainResultSchema.parse(explainText(names.map(log).join('')));
    expect(result).toMatchObject({ outcome: 'failed', tensorrtVersion: '10.6.0', unexplained: [] });
    expect(result.commandLine).toContain('--versionCompatible');
    expect(result.runs.map(({ outcome }) => outcome)).toEqual(['passed', 'failed', 'passed', 'passed']);
    expect(result.runs[1]?.line).toBe(log('10.6-build_fp16').split('\n').length);
    // The run after it passes; that one failed, and 8.6 still reads sizes its own way.
    expect(result.issues.slice(0, 2)).toMatchObject([
      { id: 'lean-runtime-missing', severity: 'error' },
      { id: 'workspace-suffix-ignored', severity: 'error' },
    ]);
  });

  test('of runs with the same trouble reports it once, with the lines of all', () => {
    const log = readFileSync(join(folder, '10.6-err_no_shapes.log'), 'utf8');
    const { issues, runs, lines } = explainText(log + log);
    expect(issues).toMatchObject([{ id: 'shapes-overridden', count: 2 }]);
    expect(issues[0]?.lines.map(({ line }) => line)).toEqual([143, 143 + lines / 2]);
    expect(runs).toHaveLength(2);
  });

  test('of a run that died names it, though the next one passed', () => {
    const [dead, sound] = ['10.6-err_ultralytics_header', '10.6-planversion'].map((name) =>
      readFileSync(join(folder, `${name}.log`), 'utf8'),
    );
    expect(explainText(`${dead}${sound}`)).toMatchObject({
      outcome: 'died',
      lastLine: 'LLVM ERROR: out of memory',
      issues: [{ id: 'process-died', remedy: expect.stringContaining('foreign headers') }],
    });
  });

  test('of nothing has no lines', () => {
    expect(explainText('')).toMatchObject({ lines: 0, outcome: 'unknown', runs: [], issues: [] });
  });

  test.each<[string, (text: Buffer) => Buffer, RegExp]>([
    ['gzip', gzipSync, /compressed by gzip.*gzip -dc/s],
    [
      'UTF-16 with its mark',
      (text) => Buffer.from(`\ufeff${text}`, 'utf16le'),
      /text in UTF-16.*iconv -f utf-16/s,
    ],
  ])('is not made of %s, and states how to get it', async (_what, encode, message) => {
    const bytes = encode(readFileSync(join(folder, '10.6-planversion.log')));
    const { message: said, remedy } = refusal(() => explainText(bytes));
    expect(`${said} ${remedy}`).toMatch(message);
    await expect(readExplainable('-', undefined, Readable.from([bytes]))).rejects.toMatchObject({
      code: 'TF_USAGE',
    });
  });

  const PARSER_8 = [
    '[05/25/2022-15:35:26] [E] [TRT] ModelImporter.cpp:748: While parsing node number 205 [Range -> "652"]:',
    '[05/25/2022-15:35:26] [E] [TRT] ModelImporter.cpp:749: --- Begin node ---',
    '[05/25/2022-15:35:26] [E] [TRT] ModelImporter.cpp:750: input: "1055"',
    'output: "652"',
    '[05/25/2022-15:35:26] [E] [TRT] ModelImporter.cpp:751: --- End node ---',
    '[05/25/2022-15:35:26] [E] [TRT] ModelImporter.cpp:754: ERROR: ModelImporter.cpp:162 In function parseGraph:',
    '[6] Invalid Node - Range_271',
    '[05/25/2022-15:35:26] [E] Failed to parse onnx file',
  ];
  const PLUGIN_10 = [
    '[06/13/2025-19:41:36] [TRT] [E] ModelImporter.cpp:961: While parsing node number 11 [GridSample -> "y"]:',
    '[06/13/2025-19:41:36] [TRT] [E] ModelImporter.cpp:964: --- Begin node ---',
    '[06/13/2025-19:41:36] [TRT] [E] ModelImporter.cpp:965: --- End node ---',
    '[06/13/2025-19:41:36] [TRT] [E] ModelImporter.cpp:967: ERROR: onnxOpCheckers.cpp:818 In function checkFallbackPluginImporter:',
    '[6] creator && "Plugin not found, are the plugin name, version, and namespace correct?"',
  ];
  test.each<[string, readonly string[], readonly string[], readonly number[]]>([
    ['a node that the parser of 8.4 refused', PARSER_8, ['node-rejected', 'importer-assertion'], []],
    ['a missing plug-in, by Python’s logger', PLUGIN_10, ['node-rejected', 'plugin-not-found'], []],
    [
      'a plan whose plug-in is not loaded, by Python’s logger',
      [
        '[03/05/2024-13:55:15] [TRT] [E] 1: [pluginV2Runner.cpp::nvinfer1::rt::load::293] Error Code 1: Serialization (Serialization assertion creator failed.Cannot deserialize plugin since corresponding IPluginCreator not found in Plugin Registry)',
        '[03/05/2024-13:55:15] [TRT] [E] 4: [runtime.cpp::nvinfer1::Runtime::deserializeCudaEngine::50] Error Code 4: Internal Error (Engine deserialization failed.)',
      ],
      ['plugin-not-found'],
      [],
    ],
    [
      'a region without kernels in 8.5',
      [
        '[04/28/2023-14:06:47] [E] Error[10]: [optimizer.cpp::computeCosts::3728] Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[177...Reshape_81 + (Unnamed Layer* 146) [Shuffle]]}.)',
        '[04/28/2023-14:06:47] [E] Error[2]: [builder.cpp::buildSerializedNetwork::751] Error Code 2: Internal Error (Assertion engine != nullptr failed. )',
      ],
      ['no-implementation-foreign-node'],
      [],
    ],
    [
      'a second context on a profile of 8.6, as TensorRT 8.6.1 said it on an H200',
      [
        '[E] 3: [executionContext.cpp::setOptimizationProfileInternal::1362] Error Code 3: Internal Error (Profile 0 has been chosen by another IExecutionContext. Use another profileIndex or destroy the IExecutionContext that use this profile.)',
      ],
      ['profile-taken'],
      [],
    ],
    [
      'the end of trtexec 8.6 on a GPU that others have filled',
      ['[11/21/2026-23:58:01] [I] Export profile to JSON file:', 'Cuda failure: out of memory'],
      ['gpu-out-of-memory'],
      [],
    ],
    ['an error of Polygraphy that nobody knows', ['[E] Something new'], [], [1]],
    [
      'an error that nobody knows, with what stands below it',
      ['[E] [TRT] Something new:', '[8] Assertion failed: a', 'a second line', '', 'of another program'],
      [],
      [1, 2, 3],
    ],
    [
      'a reason below a line that only says that something failed',
      [
        '[E] [TRT] ModelImporter.cpp:736: ERROR: ModelImporter.cpp:172 In function parseGraph:',
        '[8] Assertion failed: a',
        'b',
      ],
      [],
      [2],
    ],
    [
      'a timing cache that is not read, in the words of a plan',
      [
        '&&&& RUNNING TensorRT.trtexec [TensorRT v100600] # trtexec --onnx=m.onnx --timingCacheFile=c',
        '[E] [TRT] Error[1]: Error Code 1: Serialization (Serialization assertion magicTagRead == kMAGIC_TAG failed.Magic tag does not match)',
        '[W] [TRT] The timing cache will not be used!',
        '&&&& PASSED TensorRT.trtexec [TensorRT v100600] # trtexec --onnx=m.onnx --timingCacheFile=c',
      ],
      ['timing-cache-rejected'],
      [],
    ],
    ['an error of Python’s logger that nobody knows', ['[03/05/2024-13:55:15] [TRT] [E] New'], [], [1]],
    ['verbose lines of Python’s logger', ['[03/05/2024-13:55:15] [TRT] [V] CUDA out of memory'], [], []],
  ])('as users post them: %s', (_what, lines, issues, unexplained) => {
    const result = explainText(`${lines.join('\n')}\n`);
    expect(result.issues.map(({ id }) => id)).toEqual(issues);
    expect(result.unexplained.map(({ line }) => line)).toEqual(unexplained);
  });

  test.each([
    '2026-01-05 10:00:00.168386616 [E:onnxruntime:Default, provider.h:89 log] [2026-01-05 10:00:00   ERROR] new: it broke',
    '\u001b[1;31m2026-01-05 10:00:00.16 [E:onnxruntime:, inference_session.cc:2372 operator()] it broke\u001b[m',
    '[ONNXRuntimeError] : 1 : FAIL : it broke',
    '[libprotobuf ERROR /src/text_format.cc:317] it broke',
    "terminate called after throwing an instance of 'Own::Exception'",
    '  what():  it broke',
    'own.cpp:100:45: error: it broke',
    'own.cpp(100): error C2039: it broke',
    'own.cu(12): fatal error: it broke',
    'collect2: error: ld returned 1 exit status',
    '2024-06-03 02:05:05 ERROR (exception.py:183):handler(): it broke',
    '2024-06-03 02:05:05,123 - own.module - ERROR - it broke',
    '2024-06-03 02:05:05.123 | ERROR    | own:main:12 - it broke',
    '[2024-06-03 02:05:05.123] [error] it broke',
    '[2024-06-03 02:05:05] [own] [CRITICAL] it broke',
    'ERROR:root:it broke',
    '[ERROR] [1699999999.1] [node]: it broke',
    '[TensorRT-LLM][ERROR] it broke',
    '** ERROR: <main:716>: it broke',
    '0:00:03.123456789 30000     0x12345670 ERROR                 own_element file.cpp:635:function:<name> it broke',
    'own backend: 2: [helpers.h::f::694] Error Code 2: Internal Error (it broke)',
    "thread 'main' panicked at src/main.rs:1:1: it broke",
  ])('a line whose form is that of an error is one, from any writer: %s', (line) => {
    expect(explainText(`before\n${line}\n`).unexplained.map((each) => each.line)).toEqual([2]);
  });

  test.each([
    '2026-01-05 10:00:00.168386616 [W:onnxruntime:Default, provider.h:89 log] [2026-01-05 10:00:00 WARNING] it is odd',
    '2024-06-03 02:05:05 INFO (own.py:1): no error',
    '2024-06-03 02:05:05 there was no error in it',
    '2024-06-03 02:05:05,123 - own - WARNING - ERROR is a word',
    'own.cpp:100:45: warning: it is odd',
    'WARNING:root:error: none',
    'it has no errors: all is well',
    'errors: 0',
  ])('and no other is: %s', (line) => {
    expect(explainText(`${line}\n`)).toMatchObject({ unexplained: [], issues: [] });
  });

  test.each([
    [
      'gpu-out-of-memory',
      '[11/22/2024-13:40:47] [E] Error[1]: [defaultAllocator.cpp::allocate::31] Error Code 1: Cuda Runtime (out of memory)',
    ],
    [
      'tactic-skipped-device-memory',
      '[11/22/2024-13:40:47] [W] [TRT] Tactic Device request: 4229MB Available: 2658MB. Device memory is insufficient to use tactic.',
    ],
  ])('what follows from %s has not the remedy of its own', (id, line) => {
    const end =
      '[11/22/2024-13:40:48] [E] Error[10]: Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[/a.../b]}.)';
    const { issues } = explainText(`${line}\n${end}\n`);
    expect(issues).toMatchObject([
      { id, severity: 'error' },
      { id: 'no-implementation-foreign-node', severity: 'note', cause: expect.stringContaining(id) },
    ]);
    expect(issues.map(({ remedy }) => remedy).join()).not.toContain('--workspace 32G');
    const [alone] = explainText(`${end}\n`).issues;
    expect(alone).toMatchObject({ severity: 'error', remedy: expect.stringContaining('--workspace 32G') });
  });

  test('of a node that the parser rejected has the reason below it', () => {
    const head = '[E] [TRT] ModelImporter.cpp:736: ERROR: onnx2trt_utils.cpp:342 In function convMultiInput:';
    const reason = '[8] Assertion failed: checkSpatialDims(kernelWeights.shape)';
    const { issues, unexplained } = explainText(`${head}\n${reason}\nb\n`);
    expect(issues).toMatchObject([{ id: 'importer-assertion', severity: 'error', count: 1 }]);
    expect(issues[0]?.lines).toEqual([
      { line: 1, text: head },
      { line: 2, text: reason },
    ]);
    expect(unexplained).toEqual([]);
    const shown: string[] = [];
    renderIssues(issues, { line: (text = '') => shown.push(text), colors: plainColors });
    expect(shown.join('\n')).toContain(reason);
  });

  test('is not made of a file that is not text', () => {
    for (const bytes of [
      Buffer.from('[I] passed', 'utf16le'),
      readFileSync(process.execPath).subarray(0, 4096),
    ])
      expect(() => explainText(bytes)).toThrow(/is not text, so it is not a log/);
    const cutOff = Buffer.concat([readFileSync(join(folder, '10.6-build_fp16.log')), Buffer.alloc(4096)]);
    expect(explainText(cutOff).outcome).toBe('passed');
  });

  test('of any bytes at all is an explanation, or states that they are not text', () => {
    const real = readFileSync(join(folder, '10.6-err_vc_no_lean.log'));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(real.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 200 }),
        fc.nat(real.length),
        (edits, length) => {
          const mutated = Buffer.from(real.subarray(0, length));
          for (const [at, value] of edits) if (at < mutated.length) mutated[at] = value;
          try {
            explainResultSchema.parse(explainText(mutated));
          } catch (error) {
            expect(error).toMatchObject({ code: 'TF_USAGE' });
          }
        },
      ),
      { numRuns: 60 },
    );
    expect(explainText(Buffer.alloc(3 << 20, 0x41)).outcome).toBe('unknown');
  });
});

describe('what else can be explained', () => {
  const temporary = mkdtempSync(join(tmpdir(), 'trtforge-explainable-'));
  const line = 'Requested amount of GPU memory (1024 bytes) could not be allocated.';
  const idsOf = (result: ExplainResult | undefined) => result?.issues.map(({ id }) => id);
  afterAll(() => rmSync(temporary, { recursive: true }));

  test('standard input, in pieces that end anywhere', async () => {
    const log = readFileSync(join(folder, '10.6-err_no_shapes.log'));
    const input = Readable.from([log.subarray(0, 5000), log.subarray(5000)]);
    const result = await readExplainable('-', undefined, input);
    expect(result).toMatchObject({ log: 'standard input', outcome: 'passed' });
    expect(idsOf(result)).toEqual(['shapes-overridden']);
  });

  test('standard input that is a JSON document, in pieces', async () => {
    const text = JSON.stringify({ error: { message: `No.\n${line}` } });
    const input = Readable.from([Buffer.from(text.slice(0, 9)), Buffer.from(text.slice(9))]);
    expect(idsOf(await readExplainable('-', undefined, input))).toEqual(['gpu-out-of-memory']);
  });

  test('standard input is read line by line, whatever its length', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const held = async () => {
      await new Promise(setImmediate);
      collect();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const before = await held();
    let after = Number.POSITIVE_INFINITY;
    async function* verbose() {
      for (let index = 0; index < 2000; index++)
        yield Buffer.from(`[11/20/2026-10:00:00] [V] ${index} ${'x'.repeat(1 << 16)}\n`);
      after = await held();
      yield Buffer.from(line);
    }
    const result = await readExplainable('-', undefined, verbose());
    expect(result).toMatchObject({ lines: 2001, issues: [{ id: 'gpu-out-of-memory' }] });
    // 131 MB went through.
    expect(after - before).toBeLessThan(8 << 20);
  });

  test('a JSON result or error, by the texts in it', async () => {
    const path = join(temporary, 'error.json');
    const error = {
      code: 'TF_BUILD_FAILED',
      message: `No.\n${line}`,
      remedy: line,
      details: { issues: [{ cause: line }] },
    };
    writeFileSync(path, JSON.stringify({ schema: 'trtforge.error/1', error }));
    const result = await readExplainable(path);
    expect(result?.issues).toMatchObject([{ id: 'gpu-out-of-memory', count: 1 }]);
  });

  test('a .json that holds no JSON is lines like any other', async () => {
    const path = join(temporary, 'log.json');
    writeFileSync(path, `{ ${line}`);
    expect(idsOf(await readExplainable(path))).toEqual(['gpu-out-of-memory']);
    expect(await readExplainable(join(folder, '11.1-build.log'))).toBeUndefined();
  });

  test('a log that stops where TensorRT is silent for minutes may be of a build that still runs', () => {
    const result = explainText(
      '&&&& RUNNING TensorRT.trtexec [TensorRT v101600] [b72] # trtexec\nTotal Weights Memory: 1024 bytes\n',
    );
    expect(result.issues).toMatchObject([
      { id: 'process-died', remedy: expect.stringMatching(/^If it still runs, wait/) },
    ]);
  });
});

describe('programs that run TensorRT', () => {
  const asserted = '[6] Assertion failed: shiftIsAllZeros(zeroPoint): Non-zero zero point is not supported.';
  const unknown = 'a message that nobody knows';

  test.each<[string, (message: string) => string]>([
    ['trtexec', (text) => `[11/20/2026-10:00:00] [E] [TRT] ${text}`],
    ["TensorRT's Python logger", (text) => `[11/20/2026-10:00:00] [TRT] [E] ${text}`],
    ['old samples', (text) => `[TensorRT] ERROR: ${text}`],
    ['a run root', (text) => `    0.834  error [tensorrt-rtx] ${text}`],
    ['the terminal', (text) => `  tensorrt-rtx error ${text}`],
    [
      '--log-file',
      (message) => JSON.stringify({ time: 'x', type: 'log', source: 'tensorrt', severity: 'error', message }),
    ],
    [
      'nvinfer',
      (text) =>
        `0:00:09.303505002 18243 0xaaaadb449980 ERROR                nvinfer gst.cpp:676:log:<gie> ${text}`,
    ],
    ['Triton', (text) => `E0102 12:00:00.123456 17 model.cc:55] ${text}`],
    ["Python's exceptions", (text) => `RuntimeError: ${text}`],
  ])('%s: errors are explained, unknown ones listed', (_program, line) => {
    const { issues, unexplained } = explainText([asserted, unknown].map(line).join('\n'));
    expect(issues.map(({ id }) => id)).toEqual(['zero-point-not-zero']);
    expect(unexplained).toEqual([{ line: 2, text: line(unknown) }]);
  });

  test("trtforge's own errors repeat what stands before", () => {
    const line = '    1.034  error [trtforge] TF_MODEL_REJECTED m.onnx was rejected by the ONNX parser:';
    expect(explainText(line).unexplained).toEqual([]);
  });
});

describe('the known issues', () => {
  test('have ids of their own, a cause, a remedy and a source each', () => {
    expect(new Set(knownIssues.map(({ id }) => id)).size).toBe(knownIssues.length);
    for (const issue of knownIssues) {
      expect(issue.id).toMatch(/^[a-z0-9-]+$/);
      expect(issue.source === 'measured' || issue.source.startsWith('https://')).toBe(true);
      for (const [name] of `${issue.cause}${issue.remedy}`.matchAll(/\{\w+\}/g)) {
        expect(issue.pattern.source).toContain(`?<${name.slice(1, -1)}>`);
      }
    }
  });

  test('are all reachable: every recorded fault is found by one of them', () => {
    const names = readdirSync(folder).filter((name) => name.includes('-err_'));
    expect(names.filter((name) => ids(name.replace('.log', '')).length === 0)).toEqual([]);
  });
});
