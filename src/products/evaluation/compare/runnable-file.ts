import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { chosenGpu, visibleGpus } from '../../../addon/chosen-gpu.js';
import { publishFile } from '../../../base/files/publish.js';
import type { BuildOptions } from '../../../engines/builder/build.js';
import type { BackEnd, OpenContext, OpenOptions } from '../../../engines/runtime/back-end.js';
import { buildOrLoad } from '../../../engines/store/build-or-load.js';
import { factsOfModel } from '../../../formats/onnx/facts-of-model.js';
import { imageLayout } from '../../../formats/onnx/image-layout.js';
import { convertModel } from '../../../formats/precision/convert.js';
import type { FormatId } from '../../../formats/precision/formats/index.js';
import { bundleFiles, type ComparedModel } from './compared-models.js';

/** A toolchain that also builds is known by its name or folder. */
export type CompareOpenOptions = Omit<OpenOptions, 'provider' | 'toolchain'> & {
  readonly toolchain?: string;
};

/** Files of models that were converted in this run: every back end takes the same. */
export type ConvertedFiles = Map<ComparedModel, Promise<string>>;

interface RunnablePlace {
  /** The run root: converted models are in its folder `models`. */
  readonly root: string;
  /** Width and height of images where the model leaves them open. */
  readonly imgsz: number;
  readonly open: CompareOpenOptions;
  /** Where built engines are kept. */
  readonly store?: string | undefined;
}

/** What a back end opens: the file, its converted model, or the engine that is built of it and found again in the store. */
type Runnable =
  | { readonly is: 'file'; readonly file: string }
  | {
      readonly is: 'converted';
      readonly file: string;
      readonly precision: FormatId;
      /** One, or those of a bundle, whose `file` is a copy of its meta file beside them. */
      readonly conversions: readonly { readonly from: string; readonly to: string }[];
    }
  | { readonly is: 'engine'; readonly build: BuildOptions };

/** Throws TF_GPU_UNAVAILABLE for an engine that could not run here: none is built. */
function decideRunnable(
  { file, kind, precision }: ComparedModel,
  { takes }: BackEnd,
  { root, imgsz, open, store }: RunnablePlace,
): Runnable {
  if (takes === 'engine' && kind === 'model') {
    chosenGpu(visibleGpus(), open.device ?? 0, 'Running an engine needs an NVIDIA GPU');
    const { toolchain, plugins, device } = open;
    const build: BuildOptions = {
      model: file,
      precision: precision ?? 'as-is',
      profiles: profilesFor(file, imgsz),
      store,
      plugins,
      device,
      toolchain,
    };
    return { is: 'engine', build };
  }
  if (precision === null) return { is: 'file', file };
  const bundle = bundleFiles(file);
  if (bundle !== null) {
    const folder = join(root, 'models', precision);
    const conversions = bundle.models.map((from) => ({ from, to: join(folder, basename(from)) }));
    return { is: 'converted', file: join(folder, basename(file)), precision, conversions };
  }
  const name = basename(file).replace(/\.onnx$/i, '');
  const to = join(root, 'models', `${name}.${precision}.onnx`);
  return { is: 'converted', file: to, precision, conversions: [{ from: file, to }] };
}

/** The path of what the back end opens, which is made where it has to be. Throws what `decideRunnable`, building and converting throw. */
export async function runnableFile(
  model: ComparedModel,
  backEnd: BackEnd,
  place: RunnablePlace & { readonly converted: ConvertedFiles },
  context: OpenContext,
): Promise<string> {
  const runnable = decideRunnable(model, backEnd, place);
  if (runnable.is === 'file') return runnable.file;
  if (runnable.is === 'engine') return (await buildOrLoad(runnable.build, context)).engine;
  const { file, precision, conversions } = runnable;
  const convert = async () => {
    // A component of a bundle may have nothing to convert.
    const allowUnconverted = conversions.every(({ to }) => to !== file);
    for (const { from, to } of conversions)
      await convertModel(from, to, { precision, allowUnconverted }, context);
    if (allowUnconverted) publishFile(file, readFileSync(model.file));
    return file;
  };
  const known = place.converted.get(model) ?? convert();
  place.converted.set(model, known);
  return known;
}

/** One image at a time, at the size that the session is fed. */
function profilesFor(file: string, imgsz: number) {
  const open = factsOfModel(file).inputs.filter(({ shape }) =>
    shape?.some((size) => typeof size !== 'number'),
  );
  if (open.length === 0) return [];
  const ranges = open.map(({ name, shape }) => {
    const axes = imageLayout(shape);
    const dims = (shape ?? []).map((size, axis) => {
      if (typeof size === 'number') return size;
      if (axis === axes?.channels) return 3;
      return axis === axes?.height || axis === axes?.width ? imgsz : 1;
    });
    return [name, { min: dims, opt: dims, max: dims, values: false }] as const;
  });
  return [new Map(ranges)];
}
