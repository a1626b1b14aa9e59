import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { chosenGpu, visibleGpus } from '../../../addon/gpus.js';
import { publishFile } from '../../../base/files/publish.js';
import * as is from '../../../base/options/kinds.js';
import { allBut, type OptionsOf, valuesOf } from '../../../base/options/option.js';
import { buildOptions } from '../../../engines/builder/options.js';
import { type BackEnd, openOptions } from '../../../engines/runtime/back-end.js';
import type { WorkContext } from '../../../events.js';
import { imageLayout } from '../../../formats/onnx/image-layout.js';
import { factsOfModel } from '../../../formats/onnx/inspect.js';
import { convertModel } from '../../../formats/precision/convert.js';
import type { FormatId } from '../../../formats/precision/formats/index.js';
import { buildOrLoad } from '../../../quality/known-answer/build-or-load.js';
import { bundleFiles, type ComparedModel } from './compared-models.js';

/** Options for opening models and engines; a toolchain that also builds is known by its name or folder. */
export const comparedOpenOptions = {
  ...allBut(openOptions, 'provider'),
  toolchain: { ...openOptions.toolchain, kind: is.text },
};

export type ComparedOpening = OptionsOf<typeof comparedOpenOptions>;

/** Files of models that were converted in this run: every back end takes the same. */
export type ConvertedFiles = Map<ComparedModel, Promise<string>>;

interface RunnablePlace {
  /** The run root: converted models are in its folder `models`. */
  readonly root: string;
  /** Width and height of images where the model leaves them open. */
  readonly imgsz: number;
  readonly open: ComparedOpening;
  /** Where built engines are kept. */
  readonly store?: string | undefined;
  readonly converted: ConvertedFiles;
}

/**
 * The path of what a back end opens: the file, its converted model, or the engine that is built of it. Throws TF_GPU_UNAVAILABLE for an engine that could
 * not run here, before it is built, and what building and converting throw.
 */
export async function runnableFile(
  model: ComparedModel,
  { takes }: BackEnd,
  { root, imgsz, open, store, converted }: RunnablePlace,
  context: WorkContext,
): Promise<string> {
  const { file, kind, precision } = model;
  if (takes === 'engine' && kind === 'model') {
    chosenGpu(visibleGpus(), open.device ?? 0, 'Running an engine needs an NVIDIA GPU');
    const profiles = profilesFor(file, imgsz);
    const request = { model: file, precision: precision ?? ('as-is' as const), profiles, store };
    // Its outputs are judged here.
    const build = { ...request, knownAnswer: false, ...valuesOf(buildOptions, open) };
    return (await buildOrLoad(build, context)).engine;
  }
  if (precision === null) return file;
  const known = converted.get(model) ?? convertedFile(file, precision, root, context);
  converted.set(model, known);
  return known;
}

/** A model in the run root; of a bundle the copy of its meta file, beside its models. */
async function convertedFile(
  file: string,
  precision: FormatId,
  root: string,
  context: WorkContext,
): Promise<string> {
  const bundle = bundleFiles(file);
  if (bundle === null) {
    const to = join(root, 'models', `${basename(file).replace(/\.onnx$/i, '')}.${precision}.onnx`);
    await convertModel(file, to, { precision }, context);
    return to;
  }
  const folder = join(root, 'models', precision);
  // A component of a bundle may have nothing to convert.
  for (const from of bundle.models)
    await convertModel(from, join(folder, basename(from)), { precision, allowUnconverted: true }, context);
  const meta = join(folder, basename(file));
  publishFile(meta, readFileSync(file));
  return meta;
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
