import { basename, join, relative, resolve } from 'node:path';
import { statIfThere } from '../../../base/files/files.js';
import { publishFile } from '../../../base/files/publish.js';
import { assertUnedited, isForced } from '../../../base/files/user-files.js';
import { passportPath, readPassport } from '../../../engines/identity/passport.js';
import { isEngineFile, readPlanHeader } from '../../../engines/plan/header.js';
import { TrtforgeError } from '../../../errors.js';
import { factsOfModel } from '../../../formats/onnx/facts-of-model.js';
import { imageLayout } from '../../../formats/onnx/image-layout.js';
import { printProtobufText } from '../../../formats/serving/protobuf-text.js';
import { streamsNames } from '../names.js';
import { hasTypes } from './check.js';
import type { DeepstreamConfig } from './config-result.js';
import { type Layout, layoutOf } from './layout.js';
import { engineShape, labelsOf, modelOfEngine, preparationOf } from './model-files.js';
import { parserFile, parserFunction, parserLibrary, parserMakefile, parserSource } from './parser-source.js';
import { builtEngine, modes } from './predict.js';

export interface ConfigRequest {
  /** An engine or a model. */
  readonly file: string;
  readonly folder: string;
  /** The model of the engine, from which nvinfer builds when the engine does not fit. */
  readonly onnx?: string;
  readonly name?: string;
  readonly labels?: string;
  readonly batch?: number;
  readonly scale?: number;
  readonly offsets?: readonly number[];
  readonly color?: 'rgb' | 'bgr';
  readonly fit?: 'stretch' | 'letterbox' | 'corner';
  /** Height, width, where the model leaves them open. */
  readonly size?: readonly [number, number];
}

const refused = (why: string, remedy: string) => new TrtforgeError('TF_SERVING_REFUSED', why, { remedy });

/** Writes a configuration of nvinfer and one of nvinferserver, labels, and a parser where the outputs are of a known layout. Throws TF_SERVING_REFUSED, what reading and writing throw. */
export function writeDeepstreamConfig(request: ConfigRequest): DeepstreamConfig {
  const decided = decide(request);
  const { name, layout, labels } = decided;
  const folder = resolve(request.folder);
  const parser = basename(folder) === 'config' ? join(folder, '..', 'parser') : folder;
  const texts: (readonly [path: string, text: string])[] = [];
  if (layout !== undefined) {
    const background = layout.kind === 'detr' && layout.classes === (labels?.length ?? 0) + 1;
    texts.push([join(parser, parserFile(name)), parserSource(name, layout, background)]);
    texts.push([join(parser, 'Makefile'), parserMakefile(name)]);
  }
  if (labels !== undefined) texts.push([join(folder, 'labels.txt'), `${labels.join('\n')}\n`]);
  const library = layout === undefined ? null : within(folder, join(parser, parserLibrary(name)));
  texts.push([join(folder, `config_infer_primary_${name}.txt`), nvinferText(decided, folder, library)]);
  texts.push([join(folder, `config_inferserver_primary_${name}.txt`), serverText(decided, library)]);
  for (const [path, text] of texts) assertUnedited(path, text);
  for (const [path, text] of texts) publishFile(path, text);
  return {
    schema: 'trtforge.deepstream-config/1',
    name,
    files: texts.map(([path]) => path),
    engine: decided.engine,
    model: decided.model,
    layout: layout?.kind ?? null,
    classes: decided.classes,
    assumed: [...decided.assumed],
    warnings: [...decided.warnings],
  };
}

type Decided = ReturnType<typeof decide>;

/** What is in the files. */
function decide(request: ConfigRequest) {
  const file = resolve(request.file);
  const isEngine = isEngineFile(file);
  const assumed: string[] = [];
  const warnings: string[] = [];
  if (isEngine) judgePlan(file, warnings);
  const found = isEngine ? (request.onnx ?? modelOfEngine(file)) : file;
  const model = found === undefined ? null : resolve(found);
  const facts = model === null ? null : factsOfModel(model);
  const passport = isEngine && statIfThere(passportPath(file)) !== undefined ? readPassport(file) : null;
  const ports = passport?.plan ?? facts;
  if (ports === null)
    throw refused(
      `${request.file} has no passport, and its model is not known.`,
      'Pass the model with --onnx, or an engine with its passport.',
    );
  if (model === null)
    warnings.push('No model is named: where the engine does not load, nvinfer ends. Pass --onnx.');

  const [input] = ports.inputs;
  const shape = (passport === null ? null : engineShape(passport)) ?? input?.shape ?? null;
  const axes = imageLayout(shape);
  if (input === undefined || shape === null || axes === null)
    throw refused('The first input does not take pictures.', 'nvinfer gives pictures to the first input.');
  if (ports.inputs.length > 1)
    warnings.push(
      `nvinfer gives pictures to ${input.name} alone; a custom library must fill the other inputs.`,
    );
  const metadata = facts?.metadata ?? {};
  const known = preparationOf(model ?? file, metadata);
  const size = request.size ?? known.size;
  const side = (axis: number, otherwise: number | undefined) => {
    const dim = shape[axis];
    if (typeof dim === 'number' && dim > 0) return dim;
    if (otherwise !== undefined) return otherwise;
    throw refused(`The model leaves the size of ${input.name} open.`, 'Pass --size HEIGHTxWIDTH.');
  };
  const dims = [side(axes.channels, 3), side(axes.height, size?.[0]), side(axes.width, size?.[1])] as const;

  const range = passport?.identity.document.recipe.profiles[0]?.[input.name];
  const most = range?.max[0] ?? (typeof shape[0] === 'number' && shape[0] > 0 ? shape[0] : null);
  const batch = request.batch ?? most ?? 1;
  if (isEngine && most !== null && batch > most)
    throw refused(`--batch is ${batch}, and the engine takes at most ${most}.`, `Pass at most ${most}.`);
  if (known.warning !== null && request.scale === undefined) warnings.push(known.warning);
  const { scale, offsets, color, fit } = request;
  if (known.assumed !== null && scale === undefined) assumed.push(known.assumed);

  const layout = layoutOf(ports.outputs);
  const labels = labelsOf(request.labels, model ?? file, metadata);
  const classes = layout === undefined ? null : classesOf(layout, labels);
  if (layout === undefined)
    warnings.push(
      'The outputs are of no known layout: network-type=100 gives them to the pipeline as they are.',
    );
  else if (labels === undefined)
    warnings.push('No names of classes were found: labels.txt is missing. Pass --labels.');
  const isTyped = facts !== null && hasTypes(facts);
  const isHalf = passport?.identity.document.recipe.precision === modes[2];
  const mode = !isTyped && isHalf ? 2 : 0;
  if (!isEngine)
    assumed.push(`The engine is the one that nvinfer builds: ${mode === 0 ? 'FP32' : 'FP16'}, GPU 0.`);
  const name = request.name ?? streamsNames(model ?? file.replace(/\.\w+$/, '')).modelName;
  const decided = {
    ...{ name, model, labels, layout, classes, batch, dims, mode, isTyped, assumed, warnings },
    engine: isEngine ? file : builtEngine(file, batch, 'gpu0', mode),
    outputs: ports.outputs.map((output) => output.name),
    isNhwc: axes.layout === 'NHWC',
    prepared: {
      ...{ scale: scale ?? known.scale, offsets: offsets ?? (scale === undefined ? known.offsets : []) },
      ...{ color: color ?? known.color, fit: fit ?? known.fit },
    },
  };
  rejectHostile(decided, request.folder);
  return decided;
}

/** Throws for what DeepStream cannot load; with --force an engine of TensorRT-RTX is a warning. */
function judgePlan(file: string, warnings: string[]): void {
  const { product, foreignHeader } = readPlanHeader(file);
  if (foreignHeader !== null)
    throw refused(
      `${file} has ${foreignHeader.bytes} bytes before the plan, and TensorRT rejects it.`,
      `Run: trtforge engine strip-header ${file} -o plain.engine`,
    );
  if (product === 'tensorrt') return;
  const why = `${file} is an engine of TensorRT-RTX, which DeepStream cannot load.`;
  if (!isForced())
    throw refused(why, 'Build it with --target tensorrt, or write the files all the same with --force.');
  warnings.push(why);
}

function classesOf(layout: Layout, labels: readonly string[] | undefined): number {
  const { classes, kind } = layout;
  if (labels === undefined && classes === null)
    throw refused('The shape of the outputs does not tell the number of classes.', 'Pass --labels.');
  const isWithBackground = kind === 'detr' && classes === (labels?.length ?? 0) + 1;
  if (labels !== undefined && classes !== null && classes !== labels.length && !isWithBackground)
    throw refused(
      `There are ${labels.length} labels, and the outputs have ${classes} classes.`,
      'Pass the right --labels.',
    );
  return labels?.length ?? classes!;
}

/** A line break or a quote would make other keys, and another program, of a name. */
function rejectHostile({ name, engine, model, outputs, labels }: Decided, folder: string): void {
  const reject = (what: string, text: string) =>
    refused(
      `${what} ${JSON.stringify(text.slice(0, 80))} cannot stand in a configuration.`,
      'Rename it, or pass --name.',
    );
  if (!/^\w[\w.+-]{0,100}$/.test(name)) throw reject('The name', name);
  const odd = [engine, model ?? '', resolve(folder), ...outputs].find((text) =>
    /[\p{Cc}"'\\;]|^\s|\s$/u.test(text),
  );
  if (odd !== undefined) throw reject('The name', odd);
  const label = labels?.find((text) => /[\p{Cc};]/u.test(text) || text.trim() === '');
  if (label !== undefined) throw reject('The label', label);
}

const within = (folder: string, path: string): string => relative(folder, path) || '.';

function nvinferText(decided: Decided, folder: string, library: string | null): string {
  const { name, engine, model, labels, layout, classes, batch, dims, prepared } = decided;
  const { scale, offsets, color, fit } = prepared;
  const isBoxes = layout?.kind === 'boxes';
  const rows: (readonly [string, string | number | null | false])[] = [
    ['gpu-id', 0],
    ['gie-unique-id', 1],
    ['process-mode', 1],
    ['net-scale-factor', Number(scale.toPrecision(15))],
    ['offsets', offsets.length > 0 && offsets.map((each) => Number(each.toPrecision(9))).join(';')],
    ['model-color-format', dims[0] === 1 ? 2 : color === 'rgb' ? 0 : 1],
    ['onnx-file', model === null ? null : within(folder, model)],
    ['model-engine-file', within(folder, engine)],
    ['batch-size', batch],
    ['network-mode', decided.mode],
    ['strongly-typed', decided.isTyped && 1],
    ['infer-dims', dims.join(';')],
    ['network-input-order', decided.isNhwc && 1],
    ['maintain-aspect-ratio', fit === 'stretch' ? 0 : 1],
    ['symmetric-padding', fit === 'letterbox' ? 1 : 0],
    ['network-type', layout === undefined ? 100 : 0],
    ['output-tensor-meta', layout === undefined && 1],
    ['output-blob-names', decided.outputs.join(';')],
    ['num-detected-classes', classes],
    ['labelfile-path', labels !== undefined && 'labels.txt'],
    ['cluster-mode', layout !== undefined && (isBoxes ? 2 : 4)],
    ['custom-lib-path', library],
    ['parse-bbox-func-name', layout !== undefined && parserFunction(name)],
  ];
  const keys = rows.flatMap(([key, value]) => (value === null || value === false ? [] : `${key}=${value}`));
  const attributes = ['', '[class-attrs-all]', 'pre-cluster-threshold=0.25'];
  if (isBoxes) attributes.push('nms-iou-threshold=0.45', 'topk=300');
  const notes = [...decided.assumed, ...decided.warnings].map((note) => `# ${note}`);
  return [
    '# nvinfer, written by trtforge.',
    ...notes,
    '[property]',
    ...keys,
    ...(layout === undefined ? [] : attributes),
    '',
  ].join('\n');
}

function serverText(decided: Decided, library: string | null): string {
  const { name, labels, layout, classes, batch, prepared, isNhwc, dims } = decided;
  const { scale, offsets, color, fit } = prepared;
  const threshold = 0.25;
  const clustering =
    layout?.kind === 'boxes'
      ? { nms: { confidence_threshold: threshold, iou_threshold: 0.45, topk: 300 } }
      : { simple_cluster: { threshold } };
  const detection = {
    num_detected_classes: classes,
    custom_parse_bbox_func: parserFunction(name),
    ...clustering,
  };
  const format = dims[0] === 1 ? 'GRAY' : color.toUpperCase();
  const message = {
    infer_config: {
      unique_id: 1,
      gpu_ids: [0],
      max_batch_size: batch,
      // The repository that `trtforge triton export` writes beside the configuration.
      backend: {
        triton: {
          model_name: name,
          version: -1,
          model_repo: { root: ['../triton'], strict_model_config: true },
        },
      },
      preprocess: {
        network_format: `IMAGE_FORMAT_${format}`,
        tensor_order: isNhwc ? 'TENSOR_ORDER_NHWC' : 'TENSOR_ORDER_LINEAR',
        maintain_aspect_ratio: fit === 'stretch' ? 0 : 1,
        symmetric_padding: fit === 'letterbox' ? 1 : 0,
        normalize: { scale_factor: scale, channel_offsets: [...offsets] },
      },
      postprocess: {
        ...(labels === undefined ? {} : { labelfile_path: 'labels.txt' }),
        ...(layout === undefined ? { other: {} } : { detection }),
      },
      ...(library === null ? {} : { custom_lib: { path: library } }),
    },
    input_control: { process_mode: 'PROCESS_MODE_FULL_FRAME', interval: 0 },
    ...(layout === undefined ? { output_control: { output_tensor_meta: true } } : {}),
  };
  return printProtobufText('nvdsinferserver.config.PluginControl', message);
}
