import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type migrationSchema, migrationSchema as schema } from '../../../src/cli/commands/migrate.js';
import { shellWords } from '../../../src/cli/migrate/line.js';
import { rejectionOf } from '../../support/parsed-lines.js';
import { program, trtforge } from '../../support/trtforge.js';

type Migration = ReturnType<typeof migrationSchema.parse>;

async function migrated(...words: readonly string[]): Promise<Migration> {
  const { exitCode, json } = await trtforge(['migrate', '--json', '--', ...words]);
  expect(exitCode).toBe(0);
  return schema.parse(json());
}

const logs = fileURLToPath(new URL('../../fixtures/trtexec-logs/', import.meta.url));
const recorded = readdirSync(logs).flatMap((name) => {
  const line = /RUNNING TensorRT\.trtexec .*?# (.*)/.exec(readFileSync(`${logs}${name}`, 'utf8'))?.[1];
  return line === undefined ? [] : [line];
});

/** As people's scripts have them. */
const scripts = [
  `trtexec --onnx=encoder_streaming.onnx \\
    --saveEngine=encoder_streaming.plan \\
    --minShapes=audio_signal:1x128x584,length:1,cache_last_channel:24x1x256x1024 \\
    --optShapes=audio_signal:1x128x592,length:1,cache_last_channel:24x1x256x1024 \\
    --maxShapes=audio_signal:1x128x592,length:1,cache_last_channel:24x1x256x1024 \\
    --fp16  # Optional, test FP32 first`,
  'CUDA_VISIBLE_DEVICES=1 /usr/src/tensorrt/bin/trtexec --onnx="my models/m.onnx" --minShapes=x:1x3x640x640 --optShapes=x:64x3x640x640 --maxShapes=x:64x3x640x640 --fp16 --skipInference --memPoolSize=workspace:32768M --timingCacheFile=timing.cache --saveEngine=m.engine 2>&1 | tee build.log',
  'trtexec --loadEngine=m.engine --shapes=x:64x3x640x640 --noDataTransfers --duration=10 --warmUp=1000 2>&1 | tee bench.log',
  'trtexec --onnx=m.onnx --best --infStreams=4 --builderOptimizationLevel=4 --exposeDMA',
  'trtexec --onnx=m.onnx --profile=0 --minShapes=x:1 --optShapes=x:2 --maxShapes=x:4 --profile=1 --minShapes=x:8 --optShapes=x:16 --maxShapes=x:32 --buildOnly --sparsity=enable --preview=+aliasedPluginIO1003',
  'trtexec --onnx=m.onnx --optShapes=x:2x3 --saveEngine=m.plan --exportOutput=o.json --exportLayerInfo=l.json --dumpProfile',
  'trtexec --loadEngine=m.plan --getPlanVersionOnly',
  'polygraphy run m.onnx --trt --onnxrt --fp16 --input-shapes x:[1,3,224,224] --trt-min-shapes x:[1,3,224,224] --trt-opt-shapes x:[8,3,224,224] --trt-max-shapes x:[8,3,224,224] --atol 1e-3 --rtol out:1e-2 --val-range [0,1] --pool-limit workspace:1G',
  'polygraphy run m.onnx --onnxrt --seed 3 --save-outputs golden.json',
  'polygraphy run m.engine --trt --model-type engine --load-outputs golden.json --atol 1e-2',
  'polygraphy run m.onnx --trt --save-engine m.plan --iterations 4 --plugins a.so b.so',
  'polygraphy convert m.onnx --int8 --calibration-cache c.bin -o m.engine --builder-optimization-level 5',
  'polygraphy convert m.onnx --fp-to-fp16 -o m16.onnx',
  'polygraphy inspect model m.onnx --show layers',
  'polygraphy inspect model m.engine --show layers attrs',
  'polygraphy check lint m.onnx',
  'polygraphy debug precision m.onnx --fp16 --mode bisect',
  'polygraphy debug reduce m.onnx -o r.onnx --check ./check.sh',
  'trtexec --onnx=a.onnx --fp16 --layerPrecisions=/ln/Pow:fp32 --precisionConstraints=obey --buildOnly',
  'trtexec --onnx=a.onnx --saveEngine=a.plan --markDebug=t',
  'polygraphy run m.onnx --trt --onnxrt --trt-outputs mark all --onnx-outputs mark all',
  'python -m modelopt.onnx.quantization --onnx_path m.onnx --quantize_mode=int8 --calibration_data c.npy',
  'python -m modelopt.onnx.quantization --onnx_path=m.onnx --quantize_mode=int8 --calibration_data_path=cal.npz --calibration_eps trt cuda:0 cpu --calibration_cache_path=ranges.json --calibration_shapes=x:1x3 --output_path=o.onnx',
  'python3 tools/tensorrt/trt_streaming_parity.py --engine e.plan --ref r.jsonl --mode closed_loop --summary-json s.json',
  'python3 streaming_encoder_reference.py --model a.nemo --cache-size 256 --chunk-len 592 --num-chunks 300 --seed 42 --jsonl-out p.jsonl',
  'python tools/build_trt/build_trt.py --meta out/model_meta.json --outdir models/p --fp16',
  'python3 tools/verify_nemo/streaming_encoder_reference.py --model a.nemo --chunk-len 592 --num-chunks 50 --device cuda --jsonl-out p.jsonl',
  'python3 trt_streaming_parity.py --engine e.plan --ref r.jsonl --device cuda:1',
  'python eval_yolov10m_trt_coco.py --engine y.engine --data-root coco --out o/metrics.json',
  'python eval_yolov10m_onnx_coco.py --onnx-path y.onnx --data-root coco --providers TensorrtExecutionProvider CUDAExecutionProvider --out o',
  'tools/build_trt/scripts/build_all.sh --fp16',
  'python -m modelopt.onnx.autocast --onnx_path m.onnx --output_path o.onnx --low_precision_type bf16 --nodes_to_exclude ^/a ^/b --op_types_to_exclude Softmax --calibration_data c.npz --data_max 512 --keep_io_types',
];

describe('a line of Ultralytics', () => {
  test.each([
    [
      'device=dla:0 int8=True data=d.yaml half=True',
      ['device=dla:0', 'data=d.yaml'],
      '--precision int8 --calibration SAMPLES',
    ],
    ['device=dla:0 half=True', ['device=dla:0'], '--precision fp16'],
    [
      'int8=1 fraction=0.5 data=d.yaml device=cuda:1',
      ['fraction=0.5', 'data=d.yaml'],
      '--precision int8 --calibration SAMPLES --device 1',
    ],
    [
      'half=True workspace=4 device=0,1 imgsz=320 simplify=True',
      ['device=0,1'],
      '--precision fp16 --workspace 4G',
    ],
    ['dynamic=True batch=-1 workspace=None device=cpu', ['device=cpu'], '--batch 1/8/32'],
    ['data=d.yaml half=False', [], ''],
  ])('%s', async (settings, lost, options) => {
    const { lines, flags } = await migrated(`yolo export model=y.pt format=engine ${settings}`);
    const [line] = lines;
    expect(line!.command).toBe(`trtforge build y.onnx -o y.engine ${options}`.trim());
    expect(await rejectionOf(program, { line: line!.command, isMention: false })).toBeNull();
    expect(flags.filter(({ ours }) => ours === null).map(({ flag }) => flag)).toEqual(lost);
    // Nothing is lost without a word: a setting is in the table, or of the ONNX file.
    const told = `${flags.map(({ flag }) => flag).join(' ')} ${line!.why}`;
    for (const setting of settings.split(' ')) expect(told).toContain(setting);
  });
});

describe('every line migrates, and what it becomes parses', () => {
  const all = [...new Set([...recorded, ...scripts])].filter((line) => line.includes('--'));
  test('there are recorded lines', () => expect(recorded.length).toBeGreaterThan(20));
  test.each(all)('%s', async (line) => {
    const { lines, flags } = await migrated(line);
    expect(lines.length).toBeGreaterThan(0);
    for (const { command } of lines)
      expect(await rejectionOf(program, { line: command, isMention: false })).toBeNull();
    const given = shellWords(line).filter((word) => word.startsWith('-') && !/^-(?:m$|\d)/.test(word));
    expect(flags.length).toBe(given.length);
  });
});

describe('lines of trtexec', () => {
  test('the list of refittable weights has no counterpart, and no verb is named that lists them', async () => {
    const { flags } = await migrated('trtexec --loadEngine=m.plan --dumpRefit --dumpOptimizationProfile');
    const [refit, profile] = ['--dumpRefit', '--dumpOptimizationProfile'].map((name) =>
      flags.find(({ flag }) => flag === name),
    );
    expect([refit?.ours, refit?.why]).toEqual([null, expect.stringContaining('there is no list')]);
    expect(profile?.why).toContain('engine inspect');
  });

  test('a build is measured afterwards, unless it is only built', async () => {
    const { lines } = await migrated('trtexec --onnx=m.onnx --saveEngine=m.plan --noTF32 --warmUp=500');
    expect(lines.map(({ command }) => command)).toEqual([
      'trtforge build m.onnx -o m.plan --builder-config flags=no-tf32',
      'trtforge bench m.plan --warm-up 500',
    ]);
    const built = await migrated('trtexec --onnx=m.onnx --saveEngine=m.plan --skipInference');
    expect(built.lines.map(({ command }) => command)).toEqual(['trtforge build m.onnx -o m.plan']);
  });

  test('what TensorRT 11 removed comes with the conversion that replaces it', async () => {
    const { lines, alternatives } = await migrated(
      'trtexec --onnx=m.onnx --saveEngine=m.plan --fp16 --buildOnly',
    );
    expect([...lines, ...alternatives].map(({ command }) => command)).toEqual([
      'trtforge build m.onnx -o m.plan --precision fp16',
      'trtforge convert m.onnx -o m.fp16.onnx --precision fp16',
    ]);
  });

  test.each([
    ['--int8 --calibProfile=0', 'int8', ['--calibration', 'SAMPLES'], { '--calibProfile=0': null }],
    ['--fp16 --int8', 'int8', ['--calibration', 'SAMPLES'], { '--fp16': '' }],
    ['--fp8 --bf16', 'fp8', ['--calibration', 'SAMPLES'], { '--bf16': null }],
    ['--int4', 'int4', [], {}],
  ])('%s is a quantization, whose samples have to be named', async (given, type, samples, others) => {
    const { lines, alternatives, flags } = await migrated(`trtexec --onnx=m.onnx ${given} --buildOnly`);
    const words = ['--precision', type, ...samples].join(' ');
    expect([...lines, ...alternatives].map(({ command }) => command)).toEqual([
      `trtforge build m.onnx ${words}`,
      `trtforge convert m.onnx -o m.${type}.onnx ${words}`,
    ]);
    expect(Object.fromEntries(flags.map(({ flag, ours }) => [flag, ours]))).toEqual({
      '--onnx=m.onnx': 'm.onnx',
      [`--${type}`]: words,
      ...others,
      '--buildOnly': '',
    });
  });

  test.each([
    [
      'trtexec --onnx=m.onnx --saveEngine=m.plan --buildOnly --int8 --fp16 --calib=c.cache',
      '--calib=c.cache',
    ],
    [
      'polygraphy convert m.onnx -o m.plan --int8 --fp16 --calibration-cache c.cache',
      '--calibration-cache c.cache',
    ],
  ])('%s is built from the model that the table quantizes', async (line, table) => {
    const { lines, flags } = await migrated(line);
    expect(lines.map(({ command }) => command)).toEqual([
      'trtforge convert m.onnx -o m.int8.onnx --precision int8 --calibration-cache c.cache',
      'trtforge build m.int8.onnx -o m.plan',
    ]);
    expect(flags.find(({ flag }) => flag === table)?.ours).toBe('--calibration-cache c.cache');
  });

  test('profiles are one option each, with the ends that trtexec copies', async () => {
    const two = await migrated(
      'trtexec --onnx=m.onnx --profile=0 --minShapes=x:1 --optShapes=x:2 --maxShapes=x:4 --profile=1 --optShapes=x:8 --buildOnly',
    );
    expect(two.lines[0]?.command).toBe('trtforge build m.onnx --profile x:1/2/4 --profile x:8');
  });

  test('variables of a script stay, and quoted words stay one', async () => {
    const { lines } = await migrated(
      '$TRTEXEC --onnx="$MODEL" --saveEngine=\'a b.plan\' --buildOnly 2>&1 | tee log',
    );
    expect(lines[0]?.command).toBe(`trtforge build "$MODEL" -o 'a b.plan'`);
  });

  test('words behind -- are a line too', async () => {
    const { tool, lines } = await migrated('trtexec', '--loadEngine=m.plan', '--useCudaGraph');
    expect([tool, lines[0]?.command]).toEqual(['trtexec', 'trtforge bench m.plan --graph']);
  });

  test('a typed network keeps its types, and what is not read is reported', async () => {
    const { lines, flags } = await migrated('trtexec --onnx=m.onnx --stronglyTyped --fp16 --buildOnly $MORE');
    expect(lines.map(({ command }) => command)).toEqual(['trtforge build m.onnx']);
    expect(flags.map(({ flag, ours }) => [flag, ours])).toEqual([
      ['--onnx=m.onnx', 'm.onnx'],
      ['--stronglyTyped', ''],
      ['--fp16', null],
      ['--buildOnly', ''],
      ['$MORE', null],
    ]);
  });

  test('without quotes, what follows the name of the tool is the line', async () => {
    const { json } = await trtforge([
      'migrate',
      '--json',
      'trtexec',
      '--loadEngine=m.plan',
      '--useCudaGraph',
    ]);
    expect(json<Migration>().lines[0]?.command).toBe('trtforge bench m.plan --graph');
  });

  test('an editor of graphs keeps every flag under a name of ours, or names it', async () => {
    const { tool, flags } = await migrated(
      "polygraphy surgeon sanitize m.onnx --fold-constants --outputs 'y*' z --num-passes 3 -o n.onnx",
    );
    expect([tool, ...flags.map(({ flag, ours }) => [flag, ours])]).toEqual([
      'polygraphy surgeon',
      ['--fold-constants', '--fold'],
      ['--outputs y* z', null],
      ['--num-passes 3', null],
      ['--output n.onnx', '-o n.onnx'],
    ]);
  });

  test('a flag that trtexec does not have is reported', async () => {
    const { flags } = await migrated('trtexec --onnx=m.onnx --fp17');
    expect(flags[1]).toMatchObject({ flag: '--fp17', ours: null });
    expect(flags[1]?.why).toContain('--fp16');
  });
});

describe('lines of Polygraphy and ModelOpt', () => {
  test('run --trt --onnxrt builds and verifies', async () => {
    const { lines } = await migrated(
      'polygraphy run m.onnx --trt --onnxrt --input-shapes x:[1,3] --atol 1e-3',
    );
    expect(lines.map(({ command }) => command)).toEqual([
      'trtforge build m.onnx -o m.engine --profile x:1x3',
      'trtforge verify m.engine --against m.onnx --shapes x:1x3 --atol 1e-3',
    ]);
  });

  test('AutoCast converts inputs and outputs unless it keeps them', async () => {
    const { lines } = await migrated('python3 -m modelopt.onnx.autocast --onnx_path=m.onnx');
    expect(lines.map(({ command }) => command)).toEqual([
      'trtforge convert m.onnx -o m.fp16.onnx --io-types convert',
    ]);
  });
});

describe('the line does the job', () => {
  test.each([
    ['trtexec --onnx=a.onnx --best --buildOnly', ['build a.onnx --precision fp16']],
    [
      "trtexec --onnx=a.onnx --bf16 --layerPrecisions='/a.b/*:fp32' --buildOnly",
      ["convert a.onnx -o a.bf16.onnx --precision bf16 --keep-nodes '^/a\\.b/.*$'", 'build a.bf16.onnx'],
    ],
    [
      'polygraphy debug precision m.onnx --fp16 --check ./check.sh',
      [
        'convert m.onnx -o m.fp16.onnx --precision fp16',
        "bisect m.fp16.onnx --against m.onnx -o m.bisect --check-command './check.sh {}'",
      ],
    ],
    [
      'polygraphy run m.onnx --trt --onnxrt --trt-outputs mark all',
      ['build m.onnx -o m.engine', 'compare layers m.engine --against m.onnx'],
    ],
    ['polygraphy inspect model m.onnx --show layers weights', ['inspect m.onnx --nodes . --weights .']],
    [
      'python -m modelopt.onnx.quantization --onnx_path m.onnx --calibration_data c.npy',
      ['convert m.onnx -o m.int8.onnx --precision int8 --calibration c.npy'],
    ],
    [
      'onnxsim a.onnx b.onnx 3 --overwrite-input-shape x:0:1,3,-1,8 --target-opset 18 --inline-functions',
      [
        'edit a.onnx -o b.onnx --inline --set-dim x:0:0=1 --set-dim x:0:1=3 --set-dim x:0:3=8 --opset 18 --fold --samples 3',
      ],
    ],
    [
      'python3 -m onnxsim a.onnx b.onnx --input-shape 1,4 --skip-constant-folding --unused-output y z',
      ['edit a.onnx -o b.onnx --set-dim INPUT:0=1 --set-dim INPUT:1=4 --drop-output y --drop-output z'],
    ],
    [
      'onnxslim a.onnx b.onnx --input-shapes x:1,3 --outputs y:fp32 z:0 --dtype fp16',
      [
        `edit a.onnx -o b.fp32.onnx --extract ':y,'\\''z:0'\\''' --set-dim x:0=1 --set-dim x:1=3 --fold`,
        'convert b.fp32.onnx -o b.onnx --precision fp16',
      ],
    ],
    ['onnxslim a.onnx', ['inspect a.onnx']],
    ['onnxslim --inspect a.onnx b.onnx', ['inspect a.onnx', 'inspect b.onnx']],
    [
      'polygraphy surgeon sanitize m.onnx --fold-constants --override-input-shapes x:[1,3] --cleanup -o o.onnx',
      ['edit m.onnx -o o.onnx --set-dim x:0=1 --set-dim x:1=3 --dead --fold'],
    ],
    [
      'polygraphy surgeon extract m.onnx --inputs a:[1,3]:float32 b:auto:auto --outputs c:auto -o s.onnx',
      ['edit m.onnx -o s.onnx --extract a,b:c --set-dim a:0=1 --set-dim a:1=3'],
    ],
    [
      'yolo export model=n.pt format=engine half=True dynamic=True batch=8',
      ['build n.onnx -o n.engine --precision fp16 --batch 1/8/8'],
    ],
    [
      'python3 trt_streaming_parity.py --engine e.plan --ref r.jsonl --mode closed_loop',
      ['stream verify e.plan --reference r.jsonl --mode closed-loop'],
    ],
    [
      'python build_trt.py --meta m.json --outdir out --fp16',
      ['bundle build m.json --outdir out --precision fp16'],
    ],
    ['build_all.sh --fp16', ['bundle build META --precision fp16 --outdir engines']],
    [
      'python3 streaming_encoder_reference.py --chunk-len 592 --device cuda --jsonl-out p.jsonl',
      ['stream record MODEL.onnx --schedule 592 -o p.jsonl'],
    ],
    [
      'eval_yolov10m_trt_coco.py --engine y.engine --images-dir i --instances c.json --out o',
      ['eval detector y.engine --images i --instances c.json -o o'],
    ],
    [
      'eval_yolov10m_onnx_coco.py --onnx-path y.onnx --images-dir i --instances c.json --providers TensorrtExecutionProvider CUDAExecutionProvider',
      ['eval detector y.onnx --images i --instances c.json --provider tensorrt'],
    ],
  ])('%s', async (line, commands) => {
    const { lines } = await migrated(line);
    expect(lines.map(({ command }) => command)).toEqual(commands.map((command) => `trtforge ${command}`));
  });

  test('and a copied block runs it once', async () => {
    const { out } = await trtforge(['migrate', 'trtexec --onnx=m.onnx --fp16 --buildOnly']);
    const run = out.split('\n').filter((line) => line.trim() !== '' && !line.trim().startsWith('#'));
    expect(run).toEqual(['trtforge build m.onnx --precision fp16']);
  });
});

describe('lines without an equivalent', () => {
  test.each([
    'ls -l',
    'trtexec --help',
    "trtexec --onnx='m.onnx",
    'polygraphy surgeon prune m.onnx -o n.onnx',
    'polygraphy surgeon sanitize --fold-constants',
    'polygraphy template trt-network m.onnx -o n.py',
    'trtexec --deploy=a.prototxt --model=a.caffemodel',
    'yolo predict model=a.pt',
    'polygraphy inspect data golden.json',
  ])('%s', async (line) => {
    const { exitCode, json } = await trtforge(['migrate', '--json', line]);
    expect(exitCode).toBe(2);
    expect(json<{ error: { code: string } }>().error.code).toBe('TF_USAGE');
  });
});

test('the text view has the lines and what became of each flag', async () => {
  const { out } = await trtforge(['migrate', 'trtexec --onnx=m.onnx --int8 --stronglyTyped --buildOnly']);
  expect(out).toContain('trtforge build m.onnx');
  expect(out).toMatch(/--int8\s+no equivalent/);
  expect(out).toMatch(/--stronglyTyped\s+default here/);
});

test.each([
  ['$HOME/m.onnx', '"$HOME/m.onnx"'],
  [`\${HOME}/m.onnx`, `"\${HOME}/m.onnx"`],
  [`\${A:=$(touch x)}`, `'\${A:=$(touch x)}'`],
  [`\${a[$(touch x)]}`, `'\${a[$(touch x)]}'`],
  ['$A$((a[$(touch x)]))', "'$A$((a[$(touch x)]))'"],
  ['-o', ' ./-o'],
  ['--plugin=x.so', ' ./--plugin=x.so'],
])('%s is written as %s: nothing in the line runs', async (word, written) => {
  const { lines } = await migrated('trtexec', `--onnx=${word}`, '--saveEngine=m.plan');
  expect(lines[0]?.command).toContain(written);
});
