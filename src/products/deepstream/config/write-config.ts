import { basename, dirname, join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { namesIn, readJson } from '../../../base/files/files.js';
import { isRecord } from '../../../base/files/json.js';
import { publishFile } from '../../../base/files/publish.js';
import { assertUnedited, isForced } from '../../../base/files/user-files.js';
import { isEngineFile, type PlanHeader } from '../../../engines/plan/header.js';
import { axesOf, type NamedAxes, otherThanBatch } from '../../../engines/profiles/profile.js';
import { TrtforgeError } from '../../../errors.js';
import { labelsOfMetadata, readLabels } from '../../../formats/images/labels.js';
import { imageLayout } from '../../../formats/onnx/image-layout.js';
import { factsOfModel } from '../../../formats/onnx/inspect.js';
import type { ModelFacts } from '../../../formats/onnx/model-facts.js';
import { printProtobufText } from '../../../formats/serving/protobuf-text.js';
import { streamsNames } from '../names.js';
import type { ConfigRequest } from '../options.js';
import { hasTypes } from './check.js';
import { classesOfClassifier, type Layout, layoutOf, logitsOf, otherTask } from './detector-outputs.js';
import { faultsOfInput } from './first-input.js';
import { readEngine } from './named-files.js';
import { parserFile, parserFunction, parserLibrary, parserMakefile, parserSource } from './parser-source.js';
import { builtEngine, modes } from './predict.js';
import {
  colors,
  differsFromPassport,
  knownPreparation,
  type Preparation,
  preparationKeys,
} from './preprocessing.js';

/** The result of `deepstream config`. */
export const deepstreamConfigSchema = z.strictObject({
  schema: z.literal('trtforge.deepstream-config/1'),
  name: z.string(),
  /** In the order in which they were written: configurations last. */
  files: z.array(z.string()),
  engine: z.string(),
  model: z.string().nullable(),
  layout: z.enum(['boxes', 'end-to-end', 'detr', 'classifier']).nullable(),
  classes: z.int().nullable(),
  /** The values that no file states and that are assumed. */
  assumed: z.array(z.string()),
  warnings: z.array(z.string()),
});

export interface DeepstreamConfig extends z.infer<typeof deepstreamConfigSchema> {}

const refused = (why: string, remedy: string) => new TrtforgeError('TF_SERVING_REFUSED', why, { remedy });

/** Writes a configuration of nvinfer and one of nvinferserver, labels, and a parser where the outputs are of a known layout. Throws TF_SERVING_REFUSED, what reading and writing throw. */
export function writeDeepstreamConfig(request: ConfigRequest): DeepstreamConfig {
  const decided = decide(request);
  const { name, layout, labels, engine, model, classes, assumed, warnings } = decided;
  const folder = resolve(request.folder);
  const parser = basename(folder) === 'config' ? join(folder, '..', 'parser') : folder;
  const library = layout === undefined ? null : relative(folder, join(parser, parserLibrary(name)));
  const texts = new Map<string, string>();
  if (layout !== undefined) {
    const background = layout.kind === 'detr' && layout.classes === (labels?.length ?? 0) + 1;
    texts.set(join(parser, parserFile(name)), parserSource(name, layout, background));
    texts.set(join(parser, 'Makefile'), parserMakefile(name));
  }
  if (labels !== undefined)
    texts.set(join(folder, 'labels.txt'), `${labels.join(decided.isClassifier ? ';' : '\n')}\n`);
  texts.set(join(folder, `config_infer_primary_${name}.txt`), nvinferText(decided, folder, library));
  texts.set(join(folder, `config_inferserver_primary_${name}.txt`), serverText(decided, library));
  for (const [path, text] of texts) assertUnedited(path, text);
  for (const [path, text] of texts) publishFile(path, text);
  return {
    schema: 'trtforge.deepstream-config/1',
    files: [...texts.keys()],
    layout: decided.isClassifier ? 'classifier' : (layout?.kind ?? null),
    ...{ name, engine, model, classes, assumed, warnings },
  };
}

/** All that the files state, decided before one is written. */
interface Decided {
  readonly name: string;
  readonly engine: string;
  readonly model: string | null;
  readonly labels: readonly string[] | undefined;
  /** Undefined where no parser of the outputs is known. */
  readonly layout: Layout | undefined;
  readonly isClassifier: boolean;
  readonly classes: number | null;
  readonly batch: number;
  /** Channels, height, width. */
  readonly dims: readonly number[];
  readonly isNhwc: boolean;
  /** The network-mode of nvinfer. */
  readonly mode: number;
  readonly isTyped: boolean;
  readonly prepared: Preparation;
  readonly outputs: readonly string[];
  readonly assumed: string[];
  readonly warnings: string[];
}

/** Throws TF_SERVING_REFUSED, what reading the engine and the model throws. */
function decide(request: ConfigRequest): Decided {
  const file = resolve(request.file);
  const assumed: string[] = [];
  const warnings: string[] = [];
  const served = readServed(file, request.onnx, warnings);
  const { engine, model, facts, ports } = served;
  const metadata = facts?.metadata ?? {};
  const known = knownPreparation(model ?? file, metadata, engine?.passport?.model.preprocess);
  const pictures = picturesOf(served, request.size, known.size, warnings);
  const batch = batchOf(request.batch, served);
  if (request.scale === undefined) {
    if (known.warning !== undefined) warnings.push(known.warning);
    if (known.assumed !== undefined) assumed.push(known.assumed);
  }
  const prepared = preparedFor(request, known.prepared, served, pictures.dims, warnings);
  const other = otherThanBatch(ports);
  if (other !== undefined)
    unlessForced(
      `nvinfer splits "${other.tensor}" by pictures, and ${other.why}.`,
      'Export the model so that the first axis of each tensor is the batch, or pass --force.',
      warnings,
    );
  const labels = labelsOf(request.labels, model ?? file, metadata);
  const isTyped = facts !== null && hasTypes(facts);
  const mode = !isTyped && engine?.recipe?.precision === modes[2] ? 2 : 0;
  const outputs = outputsOf(served, metadata, labels, warnings);
  if (engine === null) assumed.push('The engine is the one that nvinfer builds: FP32, GPU 0.');
  const decided = {
    ...outputs,
    ...pictures,
    ...{ model, labels, batch, mode, isTyped, prepared, assumed, warnings },
    name: request.name ?? streamsNames(model ?? file.replace(/\.\w+$/, '')).modelName,
    engine: engine === null ? builtEngine(file, batch, 'gpu0', mode) : file,
    outputs: ports.outputs.map((output) => output.name),
  };
  rejectHostile(decided, request.folder);
  return decided;
}

/** An engine with its model, as far as it is known, or a model that nvinfer builds. */
interface Served {
  readonly engine: ReturnType<typeof readEngine> | null;
  readonly model: string | null;
  readonly facts: ModelFacts | null;
  readonly ports: NamedAxes;
  /** Of the first input, with the batch. */
  readonly shape: NamedAxes['inputs'][number]['shape'];
}

function readServed(file: string, onnx: string | undefined, warnings: string[]): Served {
  const engine = isEngineFile(file) ? readEngine(file) : null;
  if (engine !== null) judgePlan(engine.header, warnings);
  const found = engine === null ? file : (onnx ?? modelOfEngine(file));
  const model = found === undefined ? null : resolve(found);
  const facts = model === null ? null : factsOfModel(model);
  const ports = engine?.passport ? axesOf(engine.passport) : facts;
  if (ports === null)
    throw refused(`${file} has no passport, and its model is not known.`, 'Pass the model with --onnx.');
  if (model === null)
    warnings.push('No model is named: where the engine does not load, nvinfer ends. Pass --onnx.');
  return { engine, model, facts, ports, shape: engine?.profile?.opt ?? ports.inputs[0]?.shape ?? null };
}

/** The pictures of the first input; sizes that it leaves open are those of `--size`, else those that a file beside the model states. */
function picturesOf(
  { ports, shape }: Served,
  size: ConfigRequest['size'],
  known: ConfigRequest['size'] | null,
  warnings: string[],
): Pick<Decided, 'dims' | 'isNhwc'> {
  const [input, ...others] = ports.inputs;
  const axes = imageLayout(shape);
  if (input === undefined || shape === null || axes === null)
    throw refused('The first input does not take pictures.', 'nvinfer gives pictures to the first input.');
  if (others.length > 0)
    warnings.push(`nvinfer fills ${input.name} alone; a custom library must fill the other inputs.`);
  const [height, width] = size ?? known ?? [];
  const side = (axis: number, otherwise: number | undefined) => {
    const dim = shape[axis];
    if (typeof dim === 'number' && dim > 0) return dim;
    if (otherwise !== undefined) return otherwise;
    throw refused(`The model leaves the size of ${input.name} open.`, 'Pass --size HEIGHTxWIDTH.');
  };
  const dims = [side(axes.channels, 3), side(axes.height, height), side(axes.width, width)];
  if (size !== undefined && (dims[1] !== height || dims[2] !== width))
    throw refused(`The model takes ${dims[1]}x${dims[2]}, whatever --size is.`, 'Leave --size out.');
  return { dims, isNhwc: axes.layout === 'NHWC' };
}

function batchOf(requested: number | undefined, { engine, shape }: Served): number {
  const fixed = typeof shape?.[0] === 'number' && shape[0] > 0 ? shape[0] : undefined;
  const most = engine?.profile?.max[0] ?? fixed;
  const batch = requested ?? most ?? 1;
  if (engine !== null && most !== undefined && batch > most)
    throw refused(`--batch is ${batch}, and the engine takes at most ${most}.`, `Pass at most ${most}.`);
  return batch;
}

/** The preparation that is requested, and known for the rest; one that nvinfer cannot do throws or is a warning. */
function preparedFor(
  { scale, offsets, color: requested, fit }: ConfigRequest,
  known: Preparation,
  { engine, ports }: Served,
  [channels = 0]: readonly number[],
  warnings: string[],
): Preparation {
  const prepared: Preparation = {
    scale: scale ?? known.scale,
    offsets: offsets ?? (scale === undefined ? known.offsets : []),
    color: channels === 1 ? 'gray' : (requested ?? known.color),
    fit: fit ?? known.fit,
  };
  const isChanged = scale !== undefined || fit !== undefined || requested !== undefined;
  const changed = isChanged ? differsFromPassport(prepared, engine?.passport?.model.preprocess) : undefined;
  if (changed !== undefined) warnings.push(changed);
  const color = colors.indexOf(prepared.color);
  const pictures = { channels, color, offsets: prepared.offsets.length };
  for (const [code, , message] of faultsOfInput(ports, pictures)) {
    if (code === 'offsets-count') throw refused(message, 'Pass --offsets with a number for each channel.');
    warnings.push(message);
  }
  return prepared;
}

function outputsOf(
  { model, ports }: Served,
  metadata: Readonly<Record<string, string>>,
  labels: readonly string[] | undefined,
  warnings: string[],
): Pick<Decided, 'layout' | 'isClassifier' | 'classes'> {
  const isRead = ports.outputs.every(({ dtype }) => dtype === null || dtype === 'float32');
  const task = otherTask(metadata);
  const layout = isRead && task === undefined ? layoutOf(ports.outputs) : undefined;
  const classes = layout === undefined ? null : classesOf(layout, labels);
  const ofClassifier = isRead && layout === undefined ? classesOfClassifier(ports.outputs) : undefined;
  // An embedding has the same shape.
  const [classesOfOne = null] = ofClassifier ?? [];
  const isLogits = model === null || logitsOf(model).length > 0;
  const isClassifier =
    ofClassifier?.length === 1 &&
    (!isLogits || task === 'classify' || (labels !== undefined && labels.length === classesOfOne));
  if (isClassifier && labels !== undefined && classesOfOne !== null) assertCount(labels, classesOfOne);
  if (isClassifier && isLogits)
    warnings.push(
      'The output does not end in Softmax or Sigmoid: classifier-threshold is compared with logits.',
    );
  if (layout === undefined && !isClassifier) {
    const why = task !== undefined ? `of the task "${task}"` : isRead ? 'of no known layout' : 'not FP32';
    warnings.push(
      `The outputs are ${why}, without a parser here: network-type=100 passes them on as they are.`,
    );
  } else if (labels === undefined)
    warnings.push('No names of classes were found: labels.txt is missing. Pass --labels.');
  return { layout, isClassifier, classes: isClassifier ? classesOfOne : classes };
}

function assertCount({ length }: readonly string[], classes: number): void {
  if (length === classes) return;
  throw refused(`There are ${length} labels, and ${classes} classes in the outputs.`, 'Pass --labels.');
}

/** Throws for what DeepStream cannot load; with --force an engine of TensorRT-RTX is a warning. */
function judgePlan({ path, product, foreignHeader }: PlanHeader, warnings: string[]): void {
  if (foreignHeader !== null)
    throw refused(
      `${path} has ${foreignHeader.bytes} bytes before the plan, and TensorRT rejects it.`,
      `Run: trtforge engine strip-header ${path} -o plain.engine`,
    );
  if (product === 'tensorrt') return;
  const why = `${path} is an engine of TensorRT-RTX, which DeepStream cannot load.`;
  unlessForced(why, 'Build it with --target tensorrt, or pass --force.', warnings);
}

/** Warns with --force about what DeepStream cannot serve, else throws. */
function unlessForced(why: string, remedy: string, warnings: string[]): void {
  if (!isForced()) throw refused(why, remedy);
  warnings.push(why);
}

/** The one model of DeepStream's layout `models/NAME/model/`, of an engine below `models/NAME/`; undefined where there is not exactly one. */
function modelOfEngine(engine: string): string | undefined {
  const [, root] = /^(.*\/models\/[^/]+)\/(?!model\/)./.exec(engine) ?? [];
  if (root === undefined) return undefined;
  const models = namesIn(join(root, 'model')).filter((name) => name.endsWith('.onnx'));
  return models.length === 1 ? join(root, 'model', models[0]!) : undefined;
}

/** Names of classes: `--labels`, else config.json beside the model, else what the exporter left in it; undefined where there are none. */
function labelsOf(
  given: string | undefined,
  file: string,
  metadata: Readonly<Record<string, string>>,
): readonly string[] | undefined {
  const beside = join(dirname(file), 'config.json');
  const content = given === undefined ? readJson(beside) : undefined;
  const isNamed = isRecord(content) && (content.names ?? content.id2label) !== undefined;
  const source = given ?? (isNamed ? beside : undefined);
  return source === undefined ? labelsOfMetadata(metadata) : readLabels(source);
}

function classesOf({ classes, kind }: Layout, labels: readonly string[] | undefined): number {
  const count = labels?.length ?? classes;
  if (count === null)
    throw refused('The shape of the outputs does not tell the number of classes.', 'Pass --labels.');
  const isWithBackground = kind === 'detr' && classes === count + 1;
  if (labels !== undefined && classes !== null && !isWithBackground) assertCount(labels, classes);
  return count;
}

/** A line break or a quote would make other keys, and another program, of a name. */
function rejectHostile({ name, engine, model, outputs, labels }: Decided, folder: string): void {
  const named = [engine, model ?? '', resolve(folder), ...outputs];
  const odd =
    (/^\w[\w.+-]{0,100}$/.test(name) ? undefined : name) ??
    named.find((text) => /[\p{Cc}"'\\;]|^\s|\s$/u.test(text)) ??
    labels?.find((text) => /[\p{Cc};]/u.test(text));
  if (odd === undefined) return;
  const shown = JSON.stringify(odd.slice(0, 80));
  throw refused(
    `The name ${shown} cannot stand in a configuration.`,
    'Rename it, or pass --name, or --labels for the classes.',
  );
}

/** Below this score there is no object; the parser applies it to each class. */
const THRESHOLD = 0.25;

function nvinferText(decided: Decided, folder: string, library: string | null): string {
  const { name, engine, model, labels, layout, classes, batch, dims, prepared } = decided;
  const detector = layout !== undefined && [
    'network-type=0',
    `num-detected-classes=${classes}`,
    labels !== undefined && 'labelfile-path=labels.txt',
    `cluster-mode=${layout.kind === 'boxes' ? 2 : 4}`,
    `custom-lib-path=${library}`,
    `parse-bbox-func-name=${parserFunction(name)}`,
    '\n[class-attrs-all]',
    `pre-cluster-threshold=${THRESHOLD}`,
    layout.kind === 'boxes' && 'nms-iou-threshold=0.45\ntopk=300',
  ];
  const classifier = decided.isClassifier && [
    'network-type=1',
    labels !== undefined && 'labelfile-path=labels.txt',
    `classifier-threshold=${THRESHOLD}`,
  ];
  const lines = [
    '# nvinfer, written by trtforge.',
    ...[...decided.assumed, ...decided.warnings].map((note) => `# ${note}`),
    '[property]',
    'gpu-id=0',
    'gie-unique-id=1',
    'process-mode=1',
    ...preparationKeys(prepared),
    model !== null && `onnx-file=${relative(folder, model)}`,
    `model-engine-file=${relative(folder, engine)}`,
    `batch-size=${batch}`,
    `network-mode=${decided.mode}`,
    decided.isTyped && 'strongly-typed=1',
    `infer-dims=${dims.join(';')}`,
    decided.isNhwc && 'network-input-order=1',
    `output-blob-names=${decided.outputs.join(';')}`,
    ...(detector || classifier || ['network-type=100', 'output-tensor-meta=1']),
  ];
  return `${lines.filter((line) => line !== false).join('\n')}\n`;
}

function serverText(decided: Decided, library: string | null): string {
  const { name, labels, layout, classes, batch, prepared, isNhwc } = decided;
  const { scale, offsets, color, fit } = prepared;
  const nms = { nms: { confidence_threshold: THRESHOLD, iou_threshold: 0.45, topk: 300 } };
  const detection = {
    num_detected_classes: classes,
    custom_parse_bbox_func: parserFunction(name),
    ...(layout?.kind === 'boxes' ? nms : { simple_cluster: { threshold: THRESHOLD } }),
  };
  const triton = {
    ...{ model_name: name, version: -1 },
    // Where `trtforge triton export ENGINE -o …/triton`, beside the configuration's folder, writes.
    model_repo: { root: ['../triton'], strict_model_config: true },
  };
  return printProtobufText('nvdsinferserver.config.PluginControl', {
    infer_config: {
      unique_id: 1,
      gpu_ids: [0],
      max_batch_size: batch,
      backend: { triton },
      preprocess: {
        network_format: `IMAGE_FORMAT_${color.toUpperCase()}`,
        tensor_order: isNhwc ? 'TENSOR_ORDER_NHWC' : 'TENSOR_ORDER_LINEAR',
        maintain_aspect_ratio: fit === 'stretch' ? 0 : 1,
        symmetric_padding: fit === 'letterbox' ? 1 : 0,
        normalize: { scale_factor: scale, channel_offsets: [...offsets] },
      },
      postprocess: {
        ...(labels === undefined ? {} : { labelfile_path: 'labels.txt' }),
        ...(decided.isClassifier
          ? { classification: { threshold: THRESHOLD } }
          : layout === undefined
            ? { other: {} }
            : { detection }),
      },
      ...(library === null ? {} : { custom_lib: { path: library } }),
    },
    input_control: { process_mode: 'PROCESS_MODE_FULL_FRAME', interval: 0 },
    ...(layout === undefined && !decided.isClassifier
      ? { output_control: { output_tensor_meta: true } }
      : {}),
  });
}
