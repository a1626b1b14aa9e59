import { isOnnxDomain } from './graph.js';
import type { ModelProto } from './onnx_pb.js';

/** Domain to version, the ONNX domain under its full name. Where a domain is imported twice, the newer version counts. */
export function opsets(proto: ModelProto): Record<string, number> {
  const versions = new Map<string, number>();
  for (const { domain, version } of proto.opsetImport) {
    const name = isOnnxDomain(domain) ? 'ai.onnx' : domain;
    versions.set(name, Math.max(versions.get(name) ?? 0, Number(version)));
  }
  return Object.fromEntries(versions);
}
