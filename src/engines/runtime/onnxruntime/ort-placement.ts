import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Which nodes of a model ran where, by ONNX Runtime's own record of a run. */
export interface NodePlacement {
  readonly onGpu: number;
  readonly onCpu: number;
  /** Operators of the nodes on the CPU, sorted. */
  readonly cpuOperators: readonly string[];
}

interface ProfileEvent {
  readonly cat?: string;
  readonly name?: string;
  readonly args?: {
    readonly provider?: string;
    readonly op_name?: string;
    readonly node_index?: string;
  };
}

/** Copies between the two that ONNX Runtime adds; no node of the model. */
const COPIES: ReadonlySet<string> = new Set(['MemcpyToHost', 'MemcpyFromHost']);

/** Reads the one profile in a folder; null where there is none. */
export function placementIn(folder: string): NodePlacement | null {
  const [file] = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return file === undefined ? null : placementOf(readFileSync(join(folder, file), 'utf8'));
}

/** Counts each node once, however often a loop ran it. `profile` is what ONNX Runtime writes with `enableProfiling`: a JSON array of trace events. */
export function placementOf(profile: string): NodePlacement {
  const nodes = new Map<string, { readonly provider: string; readonly operator: string }>();
  for (const { cat, name = '', args = {} } of JSON.parse(profile) as readonly ProfileEvent[]) {
    const { provider, op_name: operator = '', node_index: index = '' } = args;
    if (cat !== 'Node' || provider === undefined || COPIES.has(operator)) continue;
    nodes.set(`${index} ${name}`, { provider, operator });
  }
  const onCpu = [...nodes.values()].filter(({ provider }) => provider === 'CPUExecutionProvider');
  return {
    onGpu: nodes.size - onCpu.length,
    onCpu: onCpu.length,
    cpuOperators: [...new Set(onCpu.map(({ operator }) => operator))].sort(),
  };
}

/** What a user of CUDA should know of a run; empty where every node was on the GPU, or none was requested. */
export function placementWarnings(placement: NodePlacement | null): readonly string[] {
  if (placement === null || placement.onCpu === 0) return [];
  const { onGpu, onCpu, cpuOperators } = placement;
  return [
    `${onCpu} of ${onGpu + onCpu} nodes ran on the CPU, where ONNX Runtime puts what its CUDA provider does not take, and small work on shapes: ${cpuOperators.join(', ')}.`,
  ];
}
