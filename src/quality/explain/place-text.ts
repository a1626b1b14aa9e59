import type { ModelPlace } from './explained-issue.js';

/** Number of operators and nodes that a sentence names. */
const NAMED = 6;

/** The place in the model that an issue names, in sentences; none without a place. */
export function placeSentences(place: ModelPlace | null): string[] {
  if (place === null) return [];
  return [
    whatIsThere(place),
    ...place.suspects.map(({ nodes, why }) => `Look at ${nodes.join(', ')}: ${why}`),
  ];
}

function whatIsThere({ found, total, nodes, operators }: ModelPlace): string {
  const [first] = nodes;
  if (first !== undefined && total === 1) {
    const inputs = first.inputs.map(
      ({ name, dtype, shape }) => `${name} (${dtype ?? '?'} ${shapeText(shape)})`,
    );
    const takes = inputs.length === 0 ? '' : ` and takes ${inputs.slice(0, NAMED).join(', ')}`;
    return `In the model that is ${first.name}: it is a ${first.operator}${takes}.`;
  }
  const types = Object.entries(operators).map(([type, count]) => `${count} ${type}`);
  const more = types.length > NAMED ? ` and ${types.length - NAMED} more types` : '';
  const which =
    found === 'name'
      ? `these are ${total} nodes`
      : found === 'path'
        ? `${total} nodes lie on the way`
        : `no path joins the two; ${total} nodes stand between them`;
  return `In the model ${which}: ${types.slice(0, NAMED).join(', ')}${more}.`;
}

const shapeText = (shape: ModelPlace['nodes'][number]['inputs'][number]['shape']): string =>
  shape === null ? 'of unknown shape' : `[${shape.map((dimension) => dimension ?? '?').join(', ')}]`;
