import { join } from 'node:path';
import { LARGEST_DOCUMENT, readText, statIfThere } from '../../../base/files/files.js';
import { parseProtobufText } from '../../../formats/serving/protobuf-text.js';
import { Findings } from './findings.js';
import { exportedSymbols, judgeLabels, namedFile } from './named-files.js';
import type { DeepstreamCheck } from './result.js';

interface TritonParams {
  readonly model_name?: string;
  readonly model_repo?: { readonly root?: readonly string[] };
}

/** The judged keys of a configuration of nvinferserver, by the file's own names. */
interface ServerConfig {
  readonly max_batch_size?: number;
  readonly backend?: { readonly triton?: TritonParams; readonly trt_is?: TritonParams };
  readonly postprocess?: {
    readonly labelfile_path?: string;
    readonly detection?: { readonly num_detected_classes?: number; readonly custom_parse_bbox_func?: string };
  };
  readonly custom_lib?: { readonly path?: string };
}

/** A key file has no braces behind a name. */
export const isServerText = (text: string): boolean => /^\s*infer_config\s*:?\s*\{/m.test(text);

/** The same of nvinferserver, which never builds: whether Triton has the model, for that batch. Throws TF_SERVING_CONFIG. */
export function checkServer(
  text: string,
  path: string,
): Omit<DeepstreamCheck, 'schema' | 'config' | 'target'> {
  const { infer_config = {} } = parseProtobufText('nvdsinferserver.config.PluginControl', text, path);
  const {
    max_batch_size: wanted = 0,
    backend,
    postprocess,
    custom_lib,
  }: ServerConfig = infer_config as object;
  const findings = new Findings();
  const { model_name: name = '', model_repo } = backend?.triton ?? backend?.trt_is ?? {};
  const folders = (model_repo?.root ?? []).map((root) => join(namedFile(path, root) ?? '', name));
  const folder = folders.find((each) => statIfThere(each)?.isDirectory());
  const batch = folder === undefined ? 0 : tritonBatch(join(folder, 'config.pbtxt'));
  if (name === '') findings.add('model-not-named', path, 'No model of Triton is named.');
  else if (folders.length > 0 && folder === undefined)
    findings.add('model-missing', path, `The model repository has no model ${name}.`);
  // Of a model without batching (0) nvinferserver sets the first dimension itself.
  else if (batch > 0 && wanted > batch)
    findings.add('model-batch', path, `max_batch_size is ${wanted}, and ${name} takes at most ${batch}.`);
  const served = findings.list[0];
  const { labelfile_path: labels, detection } = postprocess ?? {};
  judgeLabels(namedFile(path, labels), path, detection?.num_detected_classes, findings);
  const symbols = exportedSymbols(namedFile(path, custom_lib?.path), path, findings);
  const parser = detection?.custom_parse_bbox_func;
  if (parser && symbols?.has(parser) === false)
    findings.add('function-missing', path, `${custom_lib?.path} has no ${parser}.`);
  const ending = served ?? findings.fatal;
  return {
    element: 'nvinferserver',
    outcome: ending === undefined ? 'loads' : 'fails',
    reason: ending?.code ?? 'model-served',
    message: ending?.message ?? 'nvinferserver gets the model from Triton, as far as is known.',
    ...{ writes: null, engine: null, model: folder ?? null, trial: null, findings: findings.list },
  };
}

/** 0 without batching, and where Triton completes the configuration itself. */
function tritonBatch(path: string): number {
  if (statIfThere(path) === undefined) return 0;
  const text = readText(path, LARGEST_DOCUMENT, 'TF_SERVING_CONFIG');
  return (parseProtobufText('inference.ModelConfig', text, path).max_batch_size as number | undefined) ?? 0;
}
