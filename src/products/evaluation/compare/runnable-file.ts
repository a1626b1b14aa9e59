import { basename, join } from 'node:path';
import type { BackEnd, OpenContext, OpenOptions } from '../../../engines/runtime/back-end.js';
import { buildOrLoad } from '../../../engines/store/build-or-load.js';
import { inspectModel } from '../../../formats/onnx/inspect.js';
import { convertModel } from '../../../formats/precision/convert.js';
import type { FormatId } from '../../../formats/precision/formats/index.js';
import { chosenGpu, visibleGpus } from '../../../tensorrt/addon/chosen-gpu.js';
import type { ComparedModel } from './compared-models.js';

/** A toolchain that also builds is known by its name or folder. */
export type CompareOpenOptions = Omit<OpenOptions, 'provider' | 'toolchain'> & {
  readonly toolchain?: string;
};

/** Files of models that were converted in this run: every back end takes the same. */
export type ConvertedFiles = Map<ComparedModel, Promise<string>>;

interface Place {
  /** The run root: converted models are in its folder `models`. */
  readonly root: string;
  readonly converted: ConvertedFiles;
  /** Width and height of images where the model leaves them open. */
  readonly imgsz: number;
  readonly open: CompareOpenOptions;
  /** Where built engines are kept. */
  readonly store?: string | undefined;
}

/** What the back end opens: the file, its converted model, or the engine that is built of it and found again in the store. */
export async function runnableFile(
  model: ComparedModel,
  { takes }: BackEnd,
  { root, converted, imgsz, open, store }: Place,
  context: OpenContext,
): Promise<string> {
  const { file, kind, precision } = model;
  if (takes === 'engine' && kind === 'model') {
    // Nothing is built that could not run.
    chosenGpu(visibleGpus(), open.device ?? 0, 'Running an engine needs an NVIDIA GPU');
    const { toolchain, plugins, device } = open;
    const { engine } = await buildOrLoad(
      {
        model: file,
        precision: precision ?? 'as-is',
        profiles: profilesFor(file, imgsz),
        store,
        plugins,
        device,
        toolchain,
      },
      context,
    );
    return engine;
  }
  if (precision === null) return file;
  const known = converted.get(model) ?? convertedFile(file, precision, root, context);
  converted.set(model, known);
  return known;
}

async function convertedFile(
  file: string,
  precision: FormatId,
  root: string,
  context: OpenContext,
): Promise<string> {
  const name = basename(file).replace(/\.onnx$/i, '');
  const path = join(root, 'models', `${name}.${precision}.onnx`);
  await convertModel(file, path, { precision }, context);
  return path;
}

/** One image at a time, at the size that the session is fed. */
function profilesFor(file: string, imgsz: number) {
  const open = inspectModel(file).inputs.filter(({ shape }) =>
    shape?.some((size) => typeof size !== 'number'),
  );
  if (open.length === 0) return [];
  const sizes = [1, 3, imgsz, imgsz];
  const ranges = open.map(({ name, shape }) => {
    const dims = (shape ?? []).map((size, axis) => (typeof size === 'number' ? size : (sizes[axis] ?? 1)));
    return [name, { min: dims, opt: dims, max: dims, values: false }] as const;
  });
  return [new Map(ranges)];
}
