import { isEngineFile } from '../../engines/plan/header.js';
import { namesOfMetadata, readLabels } from '../../formats/images/labels.js';
import { factsOfModel } from '../../formats/onnx/inspect.js';
import type { Findings } from './findings.js';
import type { Labelled } from './options.js';

/** Names are equal but for case and white space around them. */
export const comparable = (name: string): string => name.trim().toLowerCase();

export function metadataOf({ model, namedBy = model }: Labelled): Readonly<Record<string, string>> {
  return isEngineFile(namedBy) ? {} : factsOfModel(namedBy).metadata;
}

/** The names of the file of labels, where there is one; those that the model itself names otherwise are findings: their results would be those of another class. */
export function readLabelsBeside(request: Labelled, findings: Findings): readonly string[] | undefined {
  if (request.labels === undefined) return undefined;
  const labels = readLabels(request.labels);
  const named = namesOfMetadata(metadataOf(request));
  const shown = (name: string | undefined) => (name === undefined ? 'missing' : `"${name}"`);
  for (const at of named.size === 0 ? [] : new Set([...labels.keys(), ...named.keys()])) {
    const label = labels[at];
    const name = named.get(at);
    if (label === undefined || name === undefined || comparable(label) !== comparable(name))
      findings.add('contradicting-label', `label ${at} is ${shown(label)}, in the model ${shown(name)}`);
  }
  return labels;
}
