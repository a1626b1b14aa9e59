import { shellQuote } from '../../base/process/shell-quote.js';
import { TrtforgeError } from '../../errors.js';
import type { ModelProto, NodeProto } from './onnx_pb.js';

/** Whether a node is a compiled engine, which ONNX Runtime's provider loads in its place. https://onnxruntime.ai/docs/execution-providers/EP-Context-Design.html */
export const isWrappedEngine = ({ opType }: NodeProto): boolean => opType === 'EPContext';

/** Whether a provider loads a compiled engine in the place of nodes. */
export const wrapsEngine = ({ graph }: ModelProto): boolean => graph?.node.some(isWrappedEngine) ?? false;

export const WRAPPED_ENGINE =
  'is an engine of an execution provider, wrapped for ONNX Runtime: nothing is left to build, convert or quantize';

/** What such a file is for. */
export const wrappedEngineRemedy = (path: string): string =>
  `Pass the model that it was made from. \`trtforge engine inspect ${shellQuote(path)}\` shows the plan, and \`trtforge run ${shellQuote(path)} --provider tensorrt\` runs it.`;

/** Throws TF_ONNX_NOT_A_MODEL for a file that is an engine and no model. */
export function rejectWrappedEngine(path: string, proto: ModelProto): void {
  const node = proto.graph?.node.find(isWrappedEngine);
  if (node === undefined) return;
  throw new TrtforgeError('TF_ONNX_NOT_A_MODEL', `The node "${node.name}" of ${path} ${WRAPPED_ENGINE}.`, {
    remedy: wrappedEngineRemedy(path),
  });
}
