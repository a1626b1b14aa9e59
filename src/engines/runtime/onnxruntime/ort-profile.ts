import { z } from 'zod';
import type { PlacedNode } from '../../../addon/onnx-runtime.js';
import { TrtforgeError } from '../../../errors.js';

const eventsSchema = z.array(
  z.object({
    cat: z.string().optional(),
    name: z.string().optional(),
    args: z
      .object({
        provider: z.string().optional(),
        op_name: z.string().optional(),
        node_index: z.string().optional(),
      })
      .optional(),
  }),
);

/**
 * The nodes in a record of a run, each once however often a loop ran it: what there is before 1.24. `profile` is what ONNX Runtime writes with profiling enabled, a
 * JSON array of trace events. Throws TF_ONNXRUNTIME_FAILED for anything else.
 */
export function nodesInProfile(profile: string): readonly PlacedNode[] {
  const nodes = new Map<string, PlacedNode>();
  for (const { cat, name = '', args = {} } of eventsIn(profile)) {
    const { provider, op_name: operator = '', node_index: index = '' } = args;
    if (cat === 'Node' && provider !== undefined)
      nodes.set(`${index} ${name}`, { provider, operator, name: name.replace(/_kernel_time$/, '') });
  }
  return [...nodes.values()];
}

function eventsIn(profile: string): z.infer<typeof eventsSchema> {
  try {
    return eventsSchema.parse(JSON.parse(profile));
  } catch (cause) {
    throw new TrtforgeError('TF_ONNXRUNTIME_FAILED', "ONNX Runtime's record of a run cannot be read.", {
      cause,
    });
  }
}
