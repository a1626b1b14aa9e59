import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { trtexecFlags } from '../../../src/behaviour/trtexec.js';
import type { Command } from '../../../src/cli/command.js';
import { withOwnFlags } from '../../../src/cli/migrate/own-flags.js';
import { foreignFlags } from '../../../src/cli/migrate/tables.js';
import { TrtforgeError } from '../../../src/errors.js';
import { products } from '../../../src/registry.js';
import { trtforge } from '../../support/trtforge.js';

const verbs = new Map<string, Command>();
for (const verb of products.flatMap((product) => product.verbs)) verbs.set(verb.path, await verb.load());
const rows = await foreignFlags(products);

async function own(line: string): Promise<string> {
  const args = line.split(' ');
  const path = verbs.has(args.slice(0, 2).join(' ')) ? args.slice(0, 2).join(' ') : (args[0] ?? '');
  return (await withOwnFlags(args, path, products)).join(' ');
}

async function answerTo(line: string): Promise<TrtforgeError> {
  try {
    await own(line);
  } catch (error) {
    if (error instanceof TrtforgeError) return error;
  }
  throw new Error(`${line} is accepted.`);
}

interface Refused {
  readonly code: string;
  readonly remedy: string;
}

describe('flags of other tools are accepted', () => {
  test.each([
    ['build --onnx=m.onnx --fp16 --saveEngine=m.plan', 'build m.onnx --precision fp16 -o m.plan'],
    [
      'build m.onnx --memPoolSize=workspace:4096,tacticSharedMem:64',
      'build m.onnx --builder-config workspace=4096 --builder-config tactic-shared-memory=64',
    ],
    ['build m.onnx --pool-limit workspace:1024', 'build m.onnx --builder-config workspace=1024B'],
    [
      'build m.onnx --noTF32 --sparsity=enable',
      'build m.onnx --builder-config flags=no-tf32 --builder-config flags=sparse-weights',
    ],
    ['build m.onnx --sparsity=disable', 'build m.onnx'],
    [
      'build m.onnx --hardwareCompatibilityLevel=ampere+',
      'build m.onnx --builder-config hardware-compatibility=ampere-plus',
    ],
    [
      'build m.onnx --profilingVerbosity=layer_names_only',
      'build m.onnx --builder-config profiling-verbosity=layer-names-only',
    ],
    ['build m.onnx --builder-opt-level 5', 'build m.onnx --builder-config optimization-level=5'],
    ['build m.onnx --shapes=x:1x3', 'build m.onnx --profile x:1x3'],
    [
      'build m.onnx --minShapes=x:1,y:2x3 --fp16 --optShapes=x:2,y:2x3 --maxShapes=x:4,y:2x3',
      'build m.onnx --profile x:1/2/4,y:2x3 --precision fp16',
    ],
    [
      'build m.onnx --trt-min-shapes x:[1,3] --trt-max-shapes x:[4,3]',
      'build m.onnx --profile x:1x3/4x3/4x3',
    ],
    ['build m.onnx --skipInference --stronglyTyped --timingCacheFile=t', 'build m.onnx --timing-cache t'],
    [
      'bench --loadEngine=m.plan --warmUp=1000 --useCudaGraph --noDataTransfers',
      'bench m.plan --warm-up 1000 --graph --no-data-transfers',
    ],
    [
      'bench m.plan --infStreams 4 --exportTimes=t.json --separateProfileRun',
      'bench m.plan --streams 4 --samples t.json',
    ],
    [
      'verify m.plan --against m.onnx --input-shapes x:[1,3] --iterations 4',
      'verify m.plan --against m.onnx --shapes x:1x3 --samples 4',
    ],
    ['run m.onnx --providers CUDAExecutionProvider', 'run m.onnx --provider cuda'],
    [
      'convert m.onnx --nodes_to_exclude ^/a --data_max 5 --low_precision_type bf16',
      'convert m.onnx --keep-nodes ^/a --data-max 5 --precision bf16',
    ],
    [
      'stream verify --engine e.plan --ref r.jsonl --mode closed_loop --dump-dir d',
      'stream verify e.plan --reference r.jsonl --mode closed-loop --dump d',
    ],
    [
      'stream record m.onnx --chunk-len 592 --num-chunks 3 --seed 42 --skip-setup-streaming-params --jsonl-out r.jsonl',
      'stream record m.onnx --schedule 592 --chunks 3 --seed 42 -o r.jsonl',
    ],
    [
      'bundle build --meta meta.json --outdir out --fp16 --workspace-mb 4096 --builder-opt-level 3',
      'bundle build meta.json --outdir out --precision fp16 --workspace 4096M --builder-config optimization-level=3',
    ],
    [
      'eval detector --onnx-path m.onnx --data-root coco --max-images 100 --providers CUDAExecutionProvider CPUExecutionProvider --disable-cpu-fallback --imgsz 640 --out run/fp32-coco/metrics.json',
      'eval detector --instances coco/annotations/instances_val2017.json --images coco/val2017 m.onnx --max-images 100 --provider cuda --imgsz 640 -o run/fp32-coco',
    ],
    [
      'eval detector --onnx_path=m.onnx --instances i.json --images-dir val --data-root coco --coco-yaml coco.yaml --image-ids-list ids.txt --providers TensorrtExecutionProvider',
      'eval detector --instances coco/annotations/instances_val2017.json --images coco/val2017 m.onnx --instances i.json --images val --labels coco.yaml --image-ids ids.txt --provider tensorrt',
    ],
    [
      'run m.onnx --providers tensorrt cuda x.npz --provider-option a=1',
      'run m.onnx --provider tensorrt x.npz --provider-option a=1',
    ],
  ])('%s', async (line, expected) => {
    expect(await own(line)).toBe(expected);
  });

  test('what is not a foreign flag stays: own flags, their values, and all behind --', async () => {
    for (const line of [
      'build m.onnx --name --fp16 --workspace 4G --profile x:1 --verbose',
      'bench m.plan --iterations 5 --duration=3',
      'stream verify e.plan --mode closed-loop',
      'run m.plan --iterations 3 -- --fp16',
      'migrate -- trtexec --onnx=m.onnx --fp16',
      'build m.onnx --config --fp16',
      'build m.onnx --precison fp16',
      'build m.onnx --out m.engine',
    ])
      expect(await own(line)).toBe(line);
  });

  test('a value keeps its spaces and equals signs', async () => {
    expect(await withOwnFlags(['build', '--onnx=my model=1.onnx'], 'build', products)).toEqual([
      'build',
      'my model=1.onnx',
    ]);
  });
});

describe('flags without an equivalent are answered', () => {
  test.each([
    ['build m.onnx --int8', '--int8', 'trtexec'],
    ['build m.onnx --sparsity=force', '--sparsity', 'trtexec'],
    ['bench m.plan --fp16', '--fp16', 'trtexec'],
    ['bench m.plan --exposeDMA', '--exposeDMA', 'trtexec'],
    ['verify m.plan --compare-func simple', '--compare-func', 'polygraphy'],
    ['bundle build meta.json --encoder-min-t 16', '--encoder-min-t', 'bundle script'],
    ['bundle build meta.json --joint-max-U=16', '--joint-max-U', 'bundle script'],
    ['stream record m.onnx --cache-size 256', '--cache-size', 'streaming script'],
    ['stream record --model m.nemo', '--model', 'streaming script'],
    ['eval detector m.onnx --out figures.json', '--out', 'detector script'],
    ['eval detector m.onnx --detections-out d.json', '--detections-out', 'detector script'],
    ['bundle build meta.json --trtexec /opt/trtexec', '--trtexec', 'bundle script'],
  ])('%s', async (line, flag, of) => {
    const error = await answerTo(line);
    expect(error.code).toBe('TF_USAGE');
    expect(error.details).toEqual({ flag, of, ours: null });
    expect(error.message).toContain(flag);
  });

  test.each([
    [
      'bundle build meta.json --trtexec /opt/trtexec',
      'TRTEXEC=/opt/trtexec trtforge bundle build meta.json --builder trtexec',
    ],
    ['bundle build meta.json --min-batch 2 --opt-batch 4', 'trtforge bundle build meta.json --batch 2/4/4'],
  ])('%s is the line that its remedy prints', async (line, instead) => {
    expect((await answerTo(line)).remedy).toBe(`Run: ${instead}`);
  });

  test('an option that only the configuration file takes is named by its key', async () => {
    expect((await answerTo('build m.onnx --op_types_to_include Conv')).remedy).toContain('`convert-ops: …`');
  });

  test.each([['--init-max', '5'], ['--init-max=5']])('its remedy has the value of %s', async (...line) => {
    const { error } = (await trtforge(['forge', 'm.onnx', ...line, '--json'])).json<{ error: Refused }>();
    expect([error.code, error.remedy]).toEqual(['TF_USAGE', expect.stringContaining('`init-max: 5`')]);
  });

  test('a flag with several values stands for each', async () => {
    const asked = await trtforge(['inspect', 'none.onnx', '--show', 'layers', 'attrs', 'weights', '--json']);
    expect(asked.json<{ error: Refused }>().error.code).toBe('TF_FILE_NOT_FOUND');
    const unknown = await trtforge(['inspect', 'none.onnx', '--show', 'layers', 'all', '--json']);
    expect(unknown.json<{ error: Refused }>().error.code).toBe('TF_USAGE');
  });

  test.each([
    ['convert advise', 'm.onnx --inputs x.npz'],
    ['build', 'm.onnx --iterations 3'],
  ])('%s %s: an option of another verb is unknown here, and not one of another tool', async (verb, rest) => {
    expect(await own(`${verb} ${rest}`)).toBe(`${verb} ${rest}`);
    const { json } = await trtforge([...verb.split(' '), ...rest.split(' '), '--json']);
    expect(json()).toMatchObject({ exitCode: 2, error: { code: 'TF_USAGE' } });
  });

  test.each([
    ['forge m.onnx --int8', 'forge m.onnx --precision int8 --calibration SAMPLES'],
    ['forge m.onnx --fp16 --int4', 'forge m.onnx --precision fp16 --precision int4'],
    ['build m.onnx --fp8 --calibration s/', 'build m.onnx --calibration s/ --precision fp8'],
  ])('%s: its remedy is the whole line', async (line, better) => {
    expect((await answerTo(line)).remedy).toBe(`Run: trtforge ${better}`);
  });

  test('the command line reports it, and exits 2', async () => {
    const { exitCode, json } = await trtforge(['build', 'm.onnx', '--int8', '--json']);
    expect(exitCode).toBe(2);
    expect(json<{ error: { code: string } }>().error.code).toBe('TF_USAGE');
  });

  test('an unknown flag gets the nearest one of this command', async () => {
    const { json } = await trtforge(['build', 'm.onnx', '--precison', 'fp16', '--json']);
    expect(json<{ error: { remedy: string } }>().error.remedy).toContain('--precision');
  });
});

describe('the table', () => {
  test('every flag of trtexec that trtforge passes has a row', () => {
    const known = new Set(rows.filter(({ of }) => of === 'trtexec').map(({ flag }) => flag));
    expect(Object.keys(trtexecFlags).filter((flag) => !known.has(`--${flag}`))).toEqual([]);
  });

  test('a tool has one row for a flag, and every row has a reason', () => {
    const keys = rows.map(({ of, flag, only = '' }) => `${of} ${flag} ${only}`);
    expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([]);
    expect(rows.filter(({ why }) => why === '' || why.endsWith('.'))).toEqual([]);
  });

  test('positional arguments and defaults are of named verbs, which exist', () => {
    for (const { flag, ours, verbs: named } of rows) {
      if (ours.some((template) => !template.startsWith('-'))) expect(named, flag).toBeDefined();
      for (const path of named ?? []) expect(verbs.has(path), `${flag}: ${path}`).toBe(true);
    }
  });

  test('every template is an option of a verb', () => {
    const options = [...verbs.values()].flatMap((command) => Object.values(command.options));
    const known = new Set(['--verbose', ...options.flatMap(({ flags }) => flags.split(/[ ,]+/))]);
    for (const { ours } of rows)
      for (const template of ours.filter((each) => each.startsWith('-')))
        expect(known.has(template.split(' ')[0] ?? ''), template).toBe(true);
  });
});

describe('what is no command or too much', () => {
  test.each([
    [
      ['trtexec', '--onnx=m.onnx', '--fp16', '--skipInference', '--saveEngine=m.plan'],
      ['build m.onnx -o m.plan --precision fp16'],
    ],
    [
      ['--onnx=m.onnx', '--fp16', '--saveEngine=m.plan', '--skipInference'],
      ['build m.onnx -o m.plan --precision fp16'],
    ],
    [['polygraphy', 'inspect', 'model', 'm.onnx'], ['inspect m.onnx']],
    [['export', 'm.onnx', '--half'], ['forge m.onnx --precision fp16']],
    [['export', 'model=m.onnx', 'format=engine', 'half=True'], ['build m.onnx -o m.engine --precision fp16']],
    [['profile', 'm.onnx'], ['bench model m.onnx']],
    [['simplify', 'm.onnx', '-o', 's.onnx'], ['edit m.onnx -o s.onnx --fold']],
    [['onnxsim', 'm.onnx', 's.onnx'], ['edit m.onnx -o s.onnx --fold']],
    [
      ['polygraphy', 'surgeon', 'sanitize', 'm.onnx', '--cleanup', '-o', 's.onnx'],
      ['edit m.onnx -o s.onnx --dead'],
    ],
    [['predict', 'm.engine'], ['run m.engine --inputs random']],
    [['predict', 'model=m.engine', 'imgsz=640'], ['run m.engine --inputs random']],
  ])('%j is answered with the line', async (args, lines) => {
    const { exitCode, json } = await trtforge([...args, '--json']);
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_USAGE']);
    const typed = json().error?.details?.lines as readonly string[];
    expect(typed.map((line) => line.replace(' --json', ''))).toEqual(lines.map((line) => `trtforge ${line}`));
  });

  test.each([
    ['build m.onnx --half --batch-size 8', 'build m.onnx --precision fp16 --batch 8'],
    ['inspect m.onnx --imgsz 640', 'inspect m.onnx --shapes images:1x3x640x640'],
    [
      'edit m.onnx --overwrite-input-shape x:1,4 --fold-constants',
      'edit m.onnx --set-dim x:0=1 --set-dim x:1=4 --fold',
    ],
    ['edit m.onnx --input-shapes x:2,4 --cleanup', 'edit m.onnx --set-dim x:0=2 --set-dim x:1=4 --dead'],
  ])('%s is accepted', async (line, expected) => {
    expect(await own(line)).toBe(expected);
  });

  test.each([
    ['build m.onnx --precision fp32', 'build m.onnx --precision as-is'],
    ['forge m.onnx --fp32', 'forge m.onnx --precision as-is'],
  ])('%s is answered: the types are those of the graph', async (line, expected) => {
    expect((await answerTo(line)).remedy).toBe(`Run: trtforge ${expected}`);
  });

  test('a precision that a verb has is its own', async () => {
    expect(await own('convert m.onnx --precision fp32')).toBe('convert m.onnx --precision fp32');
  });

  test.each([
    [['verify', 'a.onnx', 'b.onnx'], 'trtforge verify a.onnx --against b.onnx'],
    [['bisect', 'a.onnx', 'b.onnx', '-o', 'out'], 'trtforge bisect a.onnx -o out --against b.onnx'],
    [['convert', 'a.onnx', 'new.onnx'], 'trtforge convert a.onnx --output new.onnx'],
    [['edit', 'a.onnx', 'new.onnx', '--fold'], 'trtforge edit a.onnx --fold --output new.onnx'],
  ])('%j names the option that the argument is meant for', async (args, line) => {
    const { exitCode, json } = await trtforge([...args, '--json']);
    expect(exitCode).toBe(2);
    const [, typed = ''] = /^Run: (.*)$/.exec(json().error?.remedy ?? '') ?? [];
    expect(typed.replace(' --json', '').split(' ').sort()).toEqual(line.split(' ').sort());
  });

  test('a misspelt file is answered with the line that names the one beside it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-near-'));
    writeFileSync(join(folder, 'small.onnx'), '');
    const inspected = await trtforge(['inspect', join(folder, 'smal.onnx'), '--json']);
    rmSync(folder, { recursive: true });
    expect(inspected.json().error).toMatchObject({
      code: 'TF_FILE_NOT_FOUND',
      remedy: expect.stringContaining(`Run: trtforge inspect ${join(folder, 'small.onnx')} --json`),
    });
  });
});
