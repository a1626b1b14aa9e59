import { formatCount, plural } from '../base/text/quantity.js';
import type { LayerPrecisions } from '../engines/identity/passport.js';
import { typeLabel } from '../formats/tensor/dtype.js';

/** Nodes that compute in floating point for the same reason. */
interface FloatingNodes {
  readonly nodes: readonly string[];
  readonly computes: string;
  readonly reason: string;
  /** Whether the model quantizes them, in vain. */
  readonly isProblem: boolean;
}

/** The types that the layers of a quantized model compute in: a sentence for each operator, for attentions and for kernels that only convert. */
export function layerSentences({ operators, attentions, conversions }: LayerPrecisions): string[] {
  const { quantize, dequantize, move } = conversions;
  return [
    ...operators.map(({ op, nodes, types }) => {
      const [[first = '', count = 0] = [], ...rest] = Object.entries(types);
      const others = rest.map(([type, some]) => `, ${formatCount(some)} in ${typeLabel(type)}`).join('');
      return `${formatCount(count)} of ${formatCount(nodes)} ${op} in ${typeLabel(first)}${others}`;
    }),
    ...(attentions.quantized === 0
      ? []
      : [`${attentions.fused} of ${plural(attentions.quantized, 'quantized attention')} fused`]),
    ...(quantize + dequantize + move === 0
      ? []
      : [`kernels that only quantize: ${quantize}, dequantize: ${dequantize}, move: ${move}`]),
  ];
}

/** The nodes that a quantized model leaves in floating point, those that it quantizes in vain first. */
export function floatingNodes({ floating }: LayerPrecisions): readonly FloatingNodes[] {
  const groups = new Map<string, FloatingNodes & { nodes: string[] }>();
  for (const { node, computes, reason, finding, requested } of floating) {
    const key = `${computes} ${reason}`;
    const group = groups.get(key);
    if (group !== undefined) group.nodes.push(node);
    else
      groups.set(key, { nodes: [node], computes, reason, isProblem: finding !== null || requested !== null });
  }
  return [...groups.values()];
}

/** `conv1 runs in FP16: …`, with the first nodes of more. */
export function floatingSentence({ nodes, computes, reason }: FloatingNodes): string {
  const named = nodes.slice(0, 3).join(', ');
  const rest = nodes.length > 3 ? ` and ${nodes.length - 3} more` : '';
  return `${named}${rest} ${nodes.length === 1 ? 'runs' : 'run'} in ${typeLabel(computes)}: ${reason}`;
}
