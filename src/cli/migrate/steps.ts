import { quotedName } from '../../base/options/readers.js';
import { behaviour, removal } from '../../behaviour/facts.js';
import { TrtforgeError } from '../../errors.js';
import {
  defaultFormat,
  type FormatId,
  formatIds,
  quantizedFormats,
} from '../../formats/precision/formats/index.js';
import { DLA, editors, QUANTIZED } from '../foreign-flag.js';
import type { ForeignLine } from './line.js';
import { openAxes, profilesOf } from './shapes.js';

/** A line of trtforge before it is written. */
interface Step {
  readonly path: string;
  readonly args: readonly string[];
  readonly why: string;
}

/** A file `-o` is `./-o`: its name is no option of the line that is printed. */
const lastValue = ({ flags }: ForeignLine, ...names: readonly string[]): string | undefined =>
  flags.findLast(({ flag }) => names.includes(flag))?.values[0]?.replace(/^-/, './-');
const valuesOf = ({ flags }: ForeignLine, ...names: readonly string[]): readonly string[] =>
  flags.filter(({ flag }) => names.includes(flag)).flatMap(({ values }) => values);
const has = ({ flags }: ForeignLine, ...names: readonly string[]): boolean =>
  flags.some(({ flag }) => names.includes(flag));

const stem = (path: string): string => path.replace(/\.[^./]+$/, '').replace(/^-/, './-');
const isEngine = (path: string): boolean => /\.(engine|plan|trt)$/i.test(path);

/**
 * The lines that do what a line of another tool does, before its flags are added: where ranges are in a table, the model is converted before it is built.
 * Throws TF_USAGE for a line without an equivalent.
 */
export function stepsOf(line: ForeignLine): readonly Step[] {
  const steps = untypedSteps(line);
  const build = steps.find(({ path }) => path === 'build');
  const [model] = build?.args ?? [];
  const id = convertedFirst(line);
  if (model === undefined || id === undefined) return steps;
  const converted = `${stem(model)}.${id}.onnx`;
  return [
    {
      path: 'convert',
      args: [model, '-o', converted],
      why: 'converts the model, by the ranges of the table or with the nodes that stay FP32',
    },
    ...steps.map((step) => (step === build ? { ...step, args: [converted, ...step.args.slice(1)] } : step)),
  ];
}

/** The type that a flag of the line names. */
const castTo = (line: ForeignLine): FormatId | undefined => formatIds.find((id) => has(line, `--${id}`));

/** The format that a separate line converts a model to before it is built: `build` has neither ranges nor single nodes as options. */
export function convertedFirst(line: ForeignLine): FormatId | undefined {
  const codes = quantizationOf(line);
  if (codes?.hasTable === true) return codes.id;
  if (codes !== undefined || isTyped(line) || !has(line, '--layerPrecisions')) return undefined;
  return castTo(line) ?? (has(line, '--best') ? defaultFormat.id : undefined);
}

function untypedSteps(line: ForeignLine): readonly Step[] {
  if (line.tool === 'trtexec') return trtexecSteps(line);
  if (line.tool === 'modelopt') return [modeloptStep(line)];
  if (line.tool === 'yolo') return [yoloStep(line)];
  if (editors.has(line.tool)) return editSteps(line);
  if (line.tool.endsWith(' script'))
    return [
      {
        path: line.verb,
        // Streams are recorded from ONNX, which no flag of the script names.
        args: line.verb === 'stream record' ? ['MODEL.onnx'] : [],
        why: 'does the work of the script',
      },
    ];
  const [input] = line.inputs;
  if (input === undefined) throw noEquivalent(line, 'it names no file');
  switch (line.verb) {
    case 'run':
      return runSteps(line, input);
    case 'convert':
      return [convertStep(line, input)];
    case 'inspect model':
      return [
        !isEngine(input)
          ? {
              path: 'inspect',
              args: [input, ...shownOf(line)],
              why: 'inputs, outputs, operators and findings of the model',
            }
          : has(line, '--show')
            ? { path: 'engine layers', args: [input], why: 'layers of the engine, on its GPU' }
            : { path: 'engine inspect', args: [input], why: 'version, passport and header of the plan' },
      ];
    case 'inspect capability':
    case 'check lint':
      return [
        {
          path: 'inspect',
          args: [input, '--check-weights'],
          why: 'finds what TensorRT rejects, and doubtful weights',
        },
      ];
    case 'inspect data':
      throw noEquivalent(line, '`trtforge compare A B` reads recorded outputs and reports their statistics');
    case 'inspect sparsity':
    case 'inspect tactics':
    case 'inspect diff-tactics':
      throw noEquivalent(
        line,
        '`trtforge engine layers` reports tactics, `trtforge engine diff` compares them',
      );
    case 'debug precision':
    case 'debug reduce':
      return bisectSteps(line, input);
    default:
      throw noEquivalent(line, 'trtforge writes no scripts for Polygraphy, and places no plug-ins');
  }
}

const noEquivalent = ({ tool, verb }: ForeignLine, why: string): TrtforgeError =>
  new TrtforgeError('TF_USAGE', `\`${[tool, verb].join(' ').trim()}\` has no equivalent line: ${why}.`);

const profileArgs = (profiles: readonly string[]) => profiles.flatMap((profile) => ['--profile', profile]);

function trtexecSteps(line: ForeignLine): readonly Step[] {
  const onnx = lastValue(line, '--onnx');
  const load = lastValue(line, '--loadEngine');
  const shapes = valuesOf(line, '--shapes');
  if (onnx === undefined && load === undefined && has(line, '--deploy', '--model', '--uff', '--uffInput'))
    throw noEquivalent(line, `${removal('foreign-parsers')}: export the network to ONNX`);
  if (onnx === undefined && load === undefined)
    throw noEquivalent(line, 'it names neither a model (--onnx) nor an engine (--loadEngine)');
  if (load !== undefined && has(line, '--getPlanVersionOnly'))
    return [
      {
        path: 'engine inspect',
        args: [load],
        why: 'reports the version of TensorRT without loading the plan',
      },
    ];
  const measures = !has(line, '--skipInference', '--buildOnly');
  const save =
    lastValue(line, '--saveEngine') ?? (measures && onnx !== undefined ? `${stem(onnx)}.engine` : undefined);
  const engine = load ?? save ?? '';
  const build: readonly Step[] =
    load !== undefined || onnx === undefined
      ? []
      : [
          {
            path: 'build',
            args: [
              onnx,
              ...(save === undefined ? [] : ['-o', save]),
              ...profileArgs(profilesOf(line.flags, shapes)),
            ],
            why: 'builds the engine, or finds it in the store',
          },
        ];
  const bench: readonly Step[] = measures
    ? [
        {
          path: 'bench',
          args: [engine, ...shapes.flatMap((each) => ['--shapes', each])],
          why: 'measures the engine on the GPU',
        },
      ]
    : [];
  const outputs: readonly Step[] =
    measures && has(line, '--exportOutput', '--dumpOutput', '--dumpRawBindingsToFile')
      ? [
          {
            path: 'run',
            args: [engine, '--inputs', 'random', '-o', `${stem(engine)}.outputs.npz`],
            why: 'writes the outputs',
          },
        ]
      : [];
  const layers: readonly Step[] =
    onnx !== undefined && has(line, ...MARKED) ? [layersStep(engine, onnx)] : [];
  return [...build, ...bench, ...outputs, ...layers];
}

const MARKED = [
  '--markDebug',
  '--saveDebugTensors',
  '--saveAllDebugTensors',
  '--markUnfusedTensorsAsDebugTensors',
];

const layersStep = (engine: string, model: string): Step => ({
  path: 'compare layers',
  args: [engine, '--against', model],
  why: 'compares the tensors inside, and names the first that diverges',
});

/** Converts, and finds the nodes that make the converted model fail; a reduced model that still fails is among the results. */
function bisectSteps(line: ForeignLine, model: string): readonly Step[] {
  const id = castTo(line) ?? defaultFormat.id;
  const converted = `${stem(model)}.${id}.onnx`;
  const check = valuesOf(line, '--check');
  const judged = check.map((word) => (/polygraphy_debug\.(?:engine|onnx)$/.test(word) ? '{}' : word));
  const own = check[0] === undefined || check[0] === 'polygraphy';
  const command = judged.includes('{}') ? judged : [...judged, '{}'];
  return [
    { path: 'convert', args: [model, '-o', converted], why: 'converts the model' },
    {
      path: 'bisect',
      args: [
        ...[converted, '--against', model, '-o', `${stem(model)}.bisect`],
        ...(own ? [] : ['--check-command', command.join(' ')]),
      ],
      why: 'finds the nodes that have to stay FP32, and writes a reduced model that still fails',
    },
  ];
}

function shownOf(line: ForeignLine): readonly string[] {
  const shown = valuesOf(line, '--show');
  return [
    ...(shown.includes('layers') || shown.includes('attrs') ? ['--nodes', '.'] : []),
    ...(shown.includes('weights') ? ['--weights', '.'] : []),
  ];
}

/** `half=True` as name and value. */
const settingOf = (word: string): readonly [name: string, value: string] => {
  const at = word.indexOf('=');
  return at < 0 ? [word, 'True'] : [word.slice(0, at), word.slice(at + 1)];
};

/** Settings of the engine in a line of Ultralytics; the rest, with `dynamic`, is of the ONNX file that it writes first. */
const ofEngine = /^(?:format|half|int8|workspace|data|fraction|device)$/;
const isSize = (value = ''): boolean => /^[1-9]\d{0,4}$/.test(value);

/** `yolo export model=m.pt format=engine half=True`: Ultralytics writes the ONNX file, which is built. */
function yoloStep(line: ForeignLine): Step {
  const settings = new Map(line.inputs.map(settingOf));
  const [model, format = 'torchscript'] = [settings.get('model'), settings.get('format')];
  if (line.verb !== 'export' || model === undefined || !/^(?:engine|onnx)$/.test(format))
    throw noEquivalent(line, 'only yolo export model=… format=engine is translated');
  const kept = line.inputs.filter((word) => !ofEngine.test(settingOf(word)[0]));
  return {
    path: 'build',
    args: [
      ...[`${stem(model)}.onnx`, '-o', `${stem(model)}.engine`],
      ...yoloSettings(line).flatMap(({ words }) => words ?? []),
    ],
    why: `builds what \`${['yolo export', ...kept, 'format=onnx'].join(' ')}\` writes first`,
  };
}

interface YoloSetting {
  /** `half=True` */
  readonly setting: string;
  /** Of our line; null: there is no equivalent. */
  readonly words: readonly string[] | null;
  readonly why: string;
}

/** The translation of each setting of `yolo export` that is not of its ONNX file alone. */
export function yoloSettings({ inputs }: ForeignLine): readonly YoloSetting[] {
  const settings = new Map(inputs.map(settingOf));
  const isOn = (name: string) => /^(?:true|1)$/i.test(settings.get(name) ?? '');
  const batch = settings.get('batch');
  const none = (why: string) => ({ words: [], why });
  const becomes = (name: string, value: string): Omit<YoloSetting, 'setting'> => {
    if (name === 'format') return none('`trtforge build` writes an engine');
    if (name === 'int8' && isOn(name))
      return { words: ['--precision', 'int8', '--calibration', SAMPLES], why: QUANTIZED };
    if (name === 'half' && isOn('int8'))
      return none('what is around quantized nodes is FP16: --high-precision');
    if (name === 'half' && isOn(name))
      return { words: ['--precision', defaultFormat.id], why: 'half precision is FP16' };
    if (name === 'half' || name === 'int8') return none('the types stay those of the graph');
    if (name === 'data' || name === 'fraction')
      return isOn('int8')
        ? {
            words: null,
            why: 'no file of a data set is read: pass its images, or some of them, to --calibration',
          }
        : none('it concerns INT8 alone');
    if (name === 'workspace' && isSize(value))
      return { words: ['--workspace', `${value}G`], why: 'a bare number is GiB there' };
    if (name === 'device' && /^(?:cuda:)?\d+$/.test(value))
      return { words: ['--device', value.replace('cuda:', '')], why: 'the GPU by its number' };
    if (name === 'workspace') return none('the builder has the memory that is free');
    if (name === 'device')
      return { words: null, why: /dla/i.test(value) ? DLA : 'an engine is built for one GPU, by its number' };
    const sizes = isSize(batch) ? `1/${batch}/${batch}` : '1/8/32';
    return { words: ['--batch', sizes], why: 'sizes of the open first axis' };
  };
  return inputs.flatMap((setting) => {
    const [name, value] = settingOf(setting);
    const isOurs = ofEngine.test(name) || (name === 'dynamic' && isOn(name));
    return isOurs ? [{ setting, ...becomes(name, value) }] : [];
  });
}

function modeloptStep(line: ForeignLine): Step {
  const model = lastValue(line, '--onnx_path', '--onnx');
  if (model === undefined) throw noEquivalent(line, 'it names no model (--onnx_path)');
  const isQuantized = line.verb === 'quantization';
  const type =
    lastValue(line, '--low_precision_type', '--quantize_mode') ?? (isQuantized ? 'int8' : defaultFormat.id);
  const asked = isQuantized && !has(line, '--quantize_mode') ? ['--precision', type] : [];
  const hasSamples = has(line, '--calibration_data', '--calibration_data_path') || type.startsWith('int4');
  return {
    path: 'convert',
    args: [
      ...[model, '-o', lastValue(line, '--output_path') ?? `${stem(model)}.${type}.onnx`],
      ...asked,
      ...(isQuantized && !hasSamples ? ['--calibration', SAMPLES] : []),
      ...(isQuantized || has(line, '--keep_io_types') ? [] : ['--io-types', 'convert']),
    ],
    why: 'converts the model; what stays FP32 is listed with the rule',
  };
}

/** Subtools of `polygraphy surgeon` that change what a model computes, or its weights. */
const unproven: Readonly<Record<string, string>> = {
  insert: 'no step of `trtforge edit` adds nodes that change results',
  prune: 'it changes weights: train with 2:4 sparsity, which `trtforge inspect --weights .` reports',
  'weight-strip':
    'an engine is stripped, not a model: `trtforge build MODEL --builder-config flags=strip-plan`',
  'weight-reconstruct': '`trtforge report-bug` packs models with random weights',
};

/** One edit with the folding last; types are changed by a line of its own. */
function editSteps(line: ForeignLine): readonly Step[] {
  const { tool, verb, inputs } = line;
  const [model, second, samples] = inputs;
  const isSurgeon = tool === 'polygraphy surgeon';
  if (isSurgeon && verb !== 'sanitize' && verb !== 'extract')
    throw noEquivalent(line, unproven[verb] ?? 'it names neither sanitize nor extract');
  if (model === undefined) throw noEquivalent(line, 'it names no file');
  const output = isSurgeon ? lastValue(line, '--output', '--save-onnx') : second;
  if (tool === 'onnxslim' && (has(line, '--inspect') || output === undefined))
    return inputs.map((each) => ({
      ...{ path: 'inspect', args: [each] },
      why: 'inputs, outputs, operators and findings of the model',
    }));
  const halves = has(line, '--fp-to-fp16') || lastValue(line, '--dtype') === defaultFormat.id;
  const edited = halves ? `${stem(output ?? model)}.fp32.onnx` : output;
  const folds = isSurgeon ? has(line, '--fold-constants') : !has(line, '--skip-constant-folding');
  const [heads, tails] = [cutAt(line, '--inputs'), cutAt(line, '--outputs')];
  const sizes =
    verb === 'extract' ? valuesOf(line, '--inputs').flatMap((each) => openAxes(metaOf(each)[1])) : [];
  return [
    {
      path: 'edit',
      args: [
        ...[model, ...(edited === undefined ? [] : ['-o', edited])],
        ...(has(line, '--inline-functions') ? ['--inline'] : []),
        ...(heads === '' && tails === '' ? [] : ['--extract', `${heads}:${tails}`]),
        ...sizes.flatMap((size) => ['--set-dim', size]),
        ...(folds ? ['--fold'] : []),
        ...(/^[1-9]\d*$/.test(samples ?? '') && tool === 'onnxsim' ? ['--samples', samples!] : []),
      ],
      why: 'edits the model, and proves that what is left computes what the original does',
    },
    ...(halves && edited !== undefined
      ? [
          {
            path: 'convert',
            args: [edited, '-o', output ?? `${stem(model)}.fp16.onnx`],
            why: 'converts the types',
          },
        ]
      : []),
  ];
}

/** Polygraphy takes patterns for names of outputs. */
export const isPattern = (name: string): boolean => /[*?]/.test(name);

/** Names of tensors as `--extract` takes them; patterns name none. */
const cutAt = (line: ForeignLine, flag: string): string =>
  valuesOf(line, flag)
    .map((value) => metaOf(value)[0])
    .filter((name) => !isPattern(name))
    .map((name) => quotedName(name, /[:,'"]/))
    .join(',');

/** `x:[1,3]:float32`, `x:auto:auto`, `y:fp32` and `y` as the name, and the name with its shape. */
function metaOf(text: string): readonly [name: string, shape: string] {
  const [whole = '', name = whole, shape = 'auto'] =
    /^(.+?)(?::(auto|\[[^\]]*\]))?(?::(?:auto|u?int\d+|float\d+|bfloat16|bool|fp16|fp32))?$/.exec(text) ?? [];
  return [name, `${name}:${shape}`];
}

function convertStep(line: ForeignLine, model: string): Step {
  const output = lastValue(line, '--output');
  const place = output === undefined ? [] : ['-o', output];
  if (lastValue(line, '--convert-to') !== 'trt' && !isEngine(output ?? '') && has(line, '--fp-to-fp16'))
    return { path: 'convert', args: [model, ...place], why: 'converts the model' };
  if (lastValue(line, '--convert-to') !== 'trt' && !isEngine(output ?? ''))
    throw noEquivalent(line, 'trtforge builds engines (--convert-to trt) and converts types (--fp-to-fp16)');
  return {
    path: 'build',
    args: [model, ...place, ...buildProfiles(line)],
    why: 'builds the engine, or finds it in the store',
  };
}

const buildProfiles = (line: ForeignLine) =>
  profileArgs(profilesOf(line.flags, valuesOf(line, '--input-shapes', '--inputs')));

/** `--trt` builds; with `--onnxrt` the engine is compared with the model, else one of them runs. */
function runSteps(line: ForeignLine, input: string): readonly Step[] {
  const shapes = valuesOf(line, '--input-shapes', '--inputs').flatMap((each) => [
    '--shapes',
    each.replace(
      /\[([^\]]*)\]/g,
      (_, dims: string) => dims.replace(/\s/g, '').replaceAll(',', 'x') || 'scalar',
    ),
  ]);
  const golden = lastValue(line, '--load-outputs', '--load-results');
  const saved = lastValue(line, '--save-outputs', '--save-results')?.replace(/\.json$/, '.npz');
  const builds = has(line, '--trt') && !isEngine(input);
  const engine = isEngine(input)
    ? input
    : builds
      ? (lastValue(line, '--save-engine') ?? `${stem(input)}.engine`)
      : input;
  const outputs = saved ?? (golden === undefined ? undefined : `${stem(engine)}.outputs.npz`);
  const build: Step = {
    path: 'build',
    args: [input, '-o', engine, ...buildProfiles(line)],
    why: 'builds the engine, or finds it in the store',
  };
  const marks = has(line, '--trt-outputs', '--onnx-outputs') && builds;
  const verify: Step = {
    path: 'verify',
    args: [engine, '--against', input, ...shapes],
    why: 'runs both on the same inputs and compares the outputs',
  };
  const run: Step = {
    path: 'run',
    args: [engine, '--inputs', 'random', ...shapes, ...(outputs === undefined ? [] : ['-o', outputs])],
    why: 'runs it and keeps the outputs',
  };
  const compares = builds && has(line, '--onnxrt');
  return [
    ...(builds ? [build] : []),
    ...(compares && !marks ? [verify] : []),
    ...(marks ? [layersStep(engine, input)] : []),
    ...((!compares && !marks) || outputs !== undefined ? [run] : []),
    ...(golden === undefined || outputs === undefined
      ? []
      : [{ path: 'compare', args: [outputs, golden], why: 'compares with the recorded outputs' }]),
  ];
}

/** Stands for the files with samples of the inputs, which no flag of the other tools names. */
const SAMPLES = 'SAMPLES';

/** A flag for types of 8 or 4 bits, translated. */
interface ForeignQuantization {
  readonly flag: string;
  readonly id: FormatId;
  readonly words: readonly string[];
  /** Whether the line names the table of ranges that a calibrator wrote. */
  readonly hasTable: boolean;
}

/** The first flag of a line for types of 8 or 4 bits: without a table of their ranges, samples have to be named. Both tools drop types that are asked for beside typed builds. */
export function quantizationOf(line: ForeignLine): ForeignQuantization | undefined {
  const format = quantizedFormats.find(({ id }) => has(line, `--${id}`));
  if (format === undefined || isTyped(line)) return undefined;
  const { id, activations } = format;
  const hasTable = activations && lastValue(line, '--calib', '--calibration-cache') !== undefined;
  const samples = activations && !hasTable ? ['--calibration', SAMPLES] : [];
  return { flag: `--${id}`, id, words: ['--precision', id, ...samples], hasTable };
}

export const isTyped = (line: ForeignLine): boolean => has(line, '--stronglyTyped', '--strongly-typed');

/** For what TensorRT removed, the conversion that replaces it; undefined where a step converts. */
export function conversionOf(
  line: ForeignLine,
): { readonly words: readonly string[]; readonly why: string } | undefined {
  const model = lastValue(line, '--onnx') ?? line.inputs[0];
  const removed = line.flags.filter(({ row }) => row?.removed).map(({ flag }) => flag);
  if (line.tool !== 'trtexec' && line.verb.startsWith('debug')) return undefined;
  if (line.tool === 'modelopt' || removed.length === 0 || model === undefined || isEngine(model))
    return undefined;
  const codes = quantizationOf(line);
  if (isTyped(line) || convertedFirst(line) !== undefined) return undefined;
  const type = formatIds.find((id) => removed.includes(`--${id}`)) ?? defaultFormat.id;
  const { id, words } = codes ?? { id: type, words: ['--precision', type] };
  return {
    words: ['convert', model, '-o', `${stem(model)}.${id}.onnx`, ...words],
    why: `the conversion alone, for TensorRT ${behaviour['weak-typing'].tensorrt.until}, which removed ${[...new Set(removed)].join(', ')}: build with --precision ${id} does it by itself`,
  };
}
